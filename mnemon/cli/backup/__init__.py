"""Commands `mnemon backup` and `mnemon restore`."""
