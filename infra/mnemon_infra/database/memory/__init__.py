"""Queries on the memory of one user."""
