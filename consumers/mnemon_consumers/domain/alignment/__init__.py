"""Alignment of facts: how a new fact relates to a known one."""
