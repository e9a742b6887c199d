"""The wire: subjects, events, requests and replies, each versioned. Imports no other package of mnemon."""
