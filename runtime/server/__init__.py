"""The API in front of a session: HTTP as OpenAI's and Anthropic's clients speak it."""
