"""Checks of the process, its servers, and whether log, rows and vectors belong together."""
