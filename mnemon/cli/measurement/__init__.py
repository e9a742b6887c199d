"""Benchmarks and calibration."""
