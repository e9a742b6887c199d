"""What a model is given of a user's memory: one value, cut to a budget, in four formats. No I/O."""
