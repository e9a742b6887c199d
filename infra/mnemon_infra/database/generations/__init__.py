"""Generations of the projections: creation, progress, comparison and swap."""
