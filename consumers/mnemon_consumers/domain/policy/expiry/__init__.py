"""Expiry: dates until which a text says that it holds."""
