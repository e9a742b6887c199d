"""Builds the context for a model: one value, trimmed to a budget, in four formats. No I/O."""
