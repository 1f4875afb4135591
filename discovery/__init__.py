"""Who is there: the identity of this node, and the agents that mDNS shows on the network."""
