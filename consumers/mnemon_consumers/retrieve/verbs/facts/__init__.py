"""The verbs on facts: `save`, `read`, `get`, `update` and `forget`."""
