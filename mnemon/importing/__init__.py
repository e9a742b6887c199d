"""Memory from elsewhere: a reader per source, and one way of bringing in what they find."""
