"""Commands `mnemon rebuild` and `mnemon reindex`."""
