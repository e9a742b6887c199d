"""Contracts of the run-time settings: groups of settings, stored documents and presets."""
