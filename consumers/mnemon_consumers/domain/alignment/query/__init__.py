"""Queries of `forget` and `update`, and the facts that they name."""
