"""Answers requests for memory."""
