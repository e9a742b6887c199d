"""Streams, consumers and logins: declaring, creating and checking them."""
