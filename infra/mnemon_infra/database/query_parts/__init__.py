"""Query parts that repositories share: the order of a user's events, states of items, and tenants."""
