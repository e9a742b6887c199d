"""Snapshots: a user's memory as it was at a former moment."""
