"""Queries of the audit, which compares the log with the projections."""
