"""Rebuild of rows from the log."""
