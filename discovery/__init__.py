"""Who is there and whom to trust: this node's identity, the agents that mDNS shows, TLS with pinned certificates."""
