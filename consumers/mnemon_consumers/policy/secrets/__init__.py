"""Detection of secrets in a text: credentials, keys, cards, accounts, documents, seed phrases."""
