"""Benchmarks of decisions and search against labelled data."""
