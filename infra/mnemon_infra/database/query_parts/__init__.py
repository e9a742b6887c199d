"""Query parts that repositories share: the order of a user's events, and the states of items."""
