"""Publishers of events and the client for bots. The package needs only nats-py and pydantic."""
