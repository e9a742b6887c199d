"""Erasure in the streams: which messages it removes, and their removal."""
