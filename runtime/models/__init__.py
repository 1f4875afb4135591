"""What a model is made of, and where its files are."""
