"""Finds what is relevant: candidates by words and by meaning, fused, looked up, and ranked anew."""
