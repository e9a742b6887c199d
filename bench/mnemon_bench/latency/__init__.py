"""Benchmarks of replies."""
