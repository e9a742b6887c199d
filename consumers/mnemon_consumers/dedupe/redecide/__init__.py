"""Redecide: decisions on stored facts taken again under other settings."""
