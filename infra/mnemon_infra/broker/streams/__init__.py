"""Streams: reading, writing and purging them."""
