"""Benchmarks of the time until a reply arrives."""
