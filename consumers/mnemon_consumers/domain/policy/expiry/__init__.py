"""Expiry: the end of a fact, found in its words, such as "until Friday"."""
