"""A user's memory on its way out: as lines that can be imported again, and as Markdown."""
