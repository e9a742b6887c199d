"""Folders and repositories as documents that a search finds."""
