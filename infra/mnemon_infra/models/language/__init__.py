"""Language models, each through its provider's own SDK."""
