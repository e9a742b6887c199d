"""Benchmarks of events per second."""
