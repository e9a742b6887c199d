"""Decides what becomes of every fact that is proposed."""
