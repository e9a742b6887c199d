"""Answers of a model: parsed, checked, and published as events."""
