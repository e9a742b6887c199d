"""Spending: tokens and costs of language models, and daily budgets."""
