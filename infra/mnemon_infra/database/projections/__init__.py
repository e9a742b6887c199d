"""Projection of the log into rows."""
