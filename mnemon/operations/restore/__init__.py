"""Restore of a backup into empty servers, verified against its manifest."""
