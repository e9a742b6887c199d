"""Queries of the audit."""
