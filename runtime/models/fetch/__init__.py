"""Getting parts of a model to this node: from peers first, and from the hub what no peer has."""
