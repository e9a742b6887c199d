"""Ranking of the facts that a search finds, and of those linked to them by a name."""
