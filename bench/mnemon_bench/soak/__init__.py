"""Soak test: hours of mixed load on one data folder, with samples of figures that must not grow."""
