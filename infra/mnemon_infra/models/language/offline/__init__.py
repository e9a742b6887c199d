"""Provider `offline`: rules for English and Russian in the place of a model."""
