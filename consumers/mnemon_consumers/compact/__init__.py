"""Puts the oldest messages of a conversation into a few sentences."""
