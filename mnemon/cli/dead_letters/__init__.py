"""Command `mnemon dead` and its output."""
