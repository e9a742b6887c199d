"""Import of chats and facts from other systems."""
