"""HTTP gateway: events and verbs of the contracts as routes, for programs that do not speak NATS."""
