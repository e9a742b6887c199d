"""Requests and replies, by verb."""
