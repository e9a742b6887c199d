"""The `compact` consumer, which summarises the oldest messages of a conversation in a few sentences."""
