"""The controller: takes a plan to a running session, watches it, ends it; and the client that front ends use."""
