"""Alignment of facts: compares a new fact with a known one, term by term, and decides their relation."""
