"""From values to HTML."""
