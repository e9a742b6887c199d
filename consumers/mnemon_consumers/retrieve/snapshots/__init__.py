"""Snapshots: generations as of a former position, for requests with `as_of`."""
