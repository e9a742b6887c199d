"""Checks of the process and its servers, and of the consistency of log, rows and vectors."""
