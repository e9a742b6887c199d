"""Detection of secrets, such as passwords and card numbers, in texts that may become facts."""
