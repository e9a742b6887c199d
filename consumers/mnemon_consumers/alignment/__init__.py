"""Alignment of two facts: what agrees in them, what tells them apart, and what follows from that. No I/O."""
