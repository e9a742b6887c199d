"""Consumers of the log, triggers and requests, one package each. A consumer imports no other consumer."""
