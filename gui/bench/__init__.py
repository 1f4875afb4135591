"""The benchmark of the model that runs: what to measure, the table, and two splits beside each other."""
