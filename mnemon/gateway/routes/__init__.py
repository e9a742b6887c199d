"""Routes of the gateway, by what they do."""
