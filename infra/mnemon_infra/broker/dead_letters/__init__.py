"""Dead letters: storing, listing and redriving them."""
