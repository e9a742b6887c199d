"""Dates until which a text says that it holds."""
