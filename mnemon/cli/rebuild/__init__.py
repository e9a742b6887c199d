"""`mnemon rebuild` and `mnemon reindex`."""
