"""Routes of the gateway, one module for each group."""
