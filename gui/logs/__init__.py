"""What the workers of jobs wrote, to be read, searched and handed to someone who can help."""
