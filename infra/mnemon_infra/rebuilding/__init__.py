"""Making the projections anew from the log, beside those that are in use."""
