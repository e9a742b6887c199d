"""Windows of extraction, their batches, and the cost of model calls."""
