"""The Hugging Face hub over HTTP: what a repository has, and byte ranges of its files."""
