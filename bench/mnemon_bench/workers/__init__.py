"""Consumers, as they ship, in separate processes."""
