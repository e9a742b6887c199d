"""Benchmarks: most compare mnemon with a bare loop in the same run, interleaved, and report medians."""
