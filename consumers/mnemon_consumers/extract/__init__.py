"""Draws facts from what was said, in batches or at once."""
