"""Checks that log, rows and clocks belong together."""
