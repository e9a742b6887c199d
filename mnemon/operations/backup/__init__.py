"""Backup of a running deployment: log, settings, logins and erasures."""
