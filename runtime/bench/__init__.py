"""How fast a model is where it runs: measured over the API that programs use, for the command and the window."""
