"""Removal of erased rows."""
