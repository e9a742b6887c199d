"""Charts of the admin page, as SVG."""
