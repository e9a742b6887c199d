"""Audit: every event of the log accounted for, and the stores compared with it."""
