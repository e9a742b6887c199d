"""Forms of the admin page."""
