"""Soak: hours of mixed load on one data folder, with samples of everything that must not grow."""
