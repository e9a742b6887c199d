"""Ranking of the messages that a search finds, and the probability that they answer the query."""
