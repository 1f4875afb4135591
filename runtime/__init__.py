"""What runs a model over nodes. Each room below has one subject; see ARCHITECTURE.md."""
