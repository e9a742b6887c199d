"""Baselines that benchmarks compare mnemon with: bare loops and echo servers."""
