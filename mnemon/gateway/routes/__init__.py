"""Routes of the gateway, one module for each group of routes, such as events or probes."""
