"""Rebuild of rows and vectors from the log."""
