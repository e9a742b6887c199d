"""Alignment of facts: compares a new fact with a known fact, term by term, and decides their relation."""
