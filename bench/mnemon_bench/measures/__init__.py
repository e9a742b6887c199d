"""Measurements of processes, and statistics over them."""
