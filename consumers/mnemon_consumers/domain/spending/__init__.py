"""Costs of language models, and budgets."""
