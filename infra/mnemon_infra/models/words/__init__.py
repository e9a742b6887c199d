"""Weights of words and of their concepts in sparse vectors."""
