"""Extracts facts from messages with a language model, in batches or one request at a time."""
