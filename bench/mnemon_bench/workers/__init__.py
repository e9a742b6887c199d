"""Consumers as they ship, in processes of their own."""
