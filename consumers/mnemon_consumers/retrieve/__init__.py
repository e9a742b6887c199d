"""The `retrieve` consumer, which answers requests of bots for a user's memory."""
