"""Whether every event of the log ended, and the projections are what the log amounts to."""
