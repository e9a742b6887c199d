"""Windows of extraction, their batches, and their cost."""
