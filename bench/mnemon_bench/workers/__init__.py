"""Consumers and replays in separate processes, which benchmarks measure, and a client for HTTP servers."""
