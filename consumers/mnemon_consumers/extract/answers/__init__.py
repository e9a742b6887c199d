"""Checks the answers of models against the messages, and publishes the outcome of each window."""
