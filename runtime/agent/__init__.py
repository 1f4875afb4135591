"""The daemon on each node: tells what the node has, starts workers and reaps them."""
