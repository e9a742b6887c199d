"""Rebuilding rows from the log."""
