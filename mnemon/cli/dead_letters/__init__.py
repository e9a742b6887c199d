"""`mnemon dead`."""
