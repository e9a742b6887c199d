"""Alignment of short texts word by word: two facts, or a query and a fact. Pure."""
