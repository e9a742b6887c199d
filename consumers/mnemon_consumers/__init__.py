"""What reacts to events, one folder each. A consumer never imports another."""
