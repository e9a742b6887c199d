"""Search: finds candidates by words and by meaning, fuses, looks up and reranks them."""
