"""What sends events in. Needs nats-py and pydantic only."""
