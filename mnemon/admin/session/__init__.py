"""Sessions of the admin page."""
