"""Erasure of users and conversations: deletes their rows, and keeps them from being written again."""
