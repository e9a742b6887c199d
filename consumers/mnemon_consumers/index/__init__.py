"""The `index` consumer, which indexes messages, documents and summaries, and sweeps users' points."""
