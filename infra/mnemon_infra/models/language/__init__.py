"""Language models, each by its provider's own SDK."""
