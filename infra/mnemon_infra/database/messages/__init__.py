"""Queries on messages and conversations."""
