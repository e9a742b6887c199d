"""What the `offline` model goes by: rules for English and Russian, and no model at all."""
