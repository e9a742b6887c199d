"""Bare loops that the benchmarks compare mnemon with."""
