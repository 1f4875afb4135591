"""The commands of ``pomona``: everything that the window can do, in a terminal."""
