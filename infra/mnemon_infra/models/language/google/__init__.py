"""Models of Google."""
