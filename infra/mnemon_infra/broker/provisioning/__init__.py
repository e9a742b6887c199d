"""Streams, consumers and logins: declared, created, checked."""
