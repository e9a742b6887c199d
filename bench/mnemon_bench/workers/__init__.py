"""Consumers and replays in separate processes, which benchmarks measure."""
