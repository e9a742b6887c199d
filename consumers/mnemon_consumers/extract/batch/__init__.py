"""Batches of requests at a provider, from assembly to results."""
