"""Audit: comparison of every event of the log with rows, vectors and dead letters."""
