"""The chat pane: turns, Markdown that streams, the input box."""
