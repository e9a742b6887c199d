"""Parses, checks and publishes the answers of a model."""
