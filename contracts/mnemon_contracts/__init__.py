"""Wire contracts: versioned subjects, events, requests and replies. Imports no other package of mnemon."""
