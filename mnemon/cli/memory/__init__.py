"""Commands that read or change a user's memory, and `mnemon export`."""
