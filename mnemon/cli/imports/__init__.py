"""`mnemon import`."""
