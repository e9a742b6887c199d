"""Backup of a running deployment: log, settings, API keys, logins and erasures."""
