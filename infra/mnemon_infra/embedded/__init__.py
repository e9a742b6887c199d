"""Servers from Python wheels, which run in one folder without a container engine and without root."""
