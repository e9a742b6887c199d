"""Context for a model: selected items, trimmed to a budget, in one of four formats. No I/O."""
