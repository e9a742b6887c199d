"""Summarises the oldest messages of a conversation in a few sentences."""
