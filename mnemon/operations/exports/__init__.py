"""Export of users' memory."""
