"""The verb `erase`, for a user and for a conversation, and its receipt."""
