"""Answers requests of bots for a user's memory."""
