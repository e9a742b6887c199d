"""`mnemon document`."""
