"""Live plots. pyqtgraph is imported here alone, and late."""
