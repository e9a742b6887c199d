"""Model without a provider: rules for English and Russian."""
