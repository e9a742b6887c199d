"""Query of a search: its intent, and the people and periods that it names."""
