"""Benchmarks of events per second, and of a growing conversation."""
