"""Consumers of the log and of triggers, one package each. A consumer imports no other consumer."""
