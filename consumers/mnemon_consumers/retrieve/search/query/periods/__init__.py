"""Periods of time that a query names, as in "last week": their words, phrases, days and closeness."""
