"""Query parts that repositories share: state derived from the order of events, and of items."""
