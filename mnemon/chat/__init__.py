"""A conversation in the terminal with a bot that has memory."""
