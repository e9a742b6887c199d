"""Consumers of the log and of triggers, one package each. A consumer never imports another."""
