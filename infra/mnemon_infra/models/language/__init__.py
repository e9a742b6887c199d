"""Language models: those of providers through their own SDKs, and built-in rules."""
