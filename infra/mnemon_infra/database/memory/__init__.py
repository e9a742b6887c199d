"""Queries on users and their memory: messages, summaries, documents, tasks and profiles."""
