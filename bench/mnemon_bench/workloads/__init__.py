"""Generated events and conversations."""
