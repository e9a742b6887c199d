"""Generations of the projections."""
