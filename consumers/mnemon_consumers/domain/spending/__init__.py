"""What language models cost, and budgets."""
