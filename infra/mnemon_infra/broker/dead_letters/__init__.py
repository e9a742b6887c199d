"""Dead letters: stored, listed, redriven."""
