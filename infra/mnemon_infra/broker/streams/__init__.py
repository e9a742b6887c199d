"""Streams: reading and writing."""
