"""Benchmarks: each compares mnemon with a bare loop in the same run, interleaved, and reports medians."""
