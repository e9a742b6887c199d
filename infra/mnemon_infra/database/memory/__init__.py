"""Queries on the memory of one user: messages, summaries, documents, tasks and the profile."""
