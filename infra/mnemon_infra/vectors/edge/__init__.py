"""Qdrant Edge, the embedded vector engine."""
