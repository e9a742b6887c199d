"""Command `mnemon import` and its progress."""
