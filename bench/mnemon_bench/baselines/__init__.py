"""Baselines that benchmarks compare mnemon with: loops and echo servers made of stock libraries."""
