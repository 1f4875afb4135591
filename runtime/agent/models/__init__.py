"""An agent's models: what it has, serving them to its peers, and fetching what an order wants."""
