"""Kinds of secrets, one module each."""
