"""Ranking of messages, and whether they answer the query."""
