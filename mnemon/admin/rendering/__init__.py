"""Rendering of values as HTML."""
