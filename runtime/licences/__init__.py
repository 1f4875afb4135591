"""What About and ``pomona licences`` show: the work of others in Pomona, with the texts that go with it."""
