"""Query of a search: its intent, its vector, and the people and periods that it names."""
