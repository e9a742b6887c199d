"""What is on the wire: subjects, events, requests and replies, each versioned. Imports nothing of ours."""
