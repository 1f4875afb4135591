"""What goes wrong on people's machines, done to real agents and workers; `make faults` prints a table of it."""
