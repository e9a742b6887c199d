"""Publishers of events and the client for bots. Needs nats-py and pydantic only."""
