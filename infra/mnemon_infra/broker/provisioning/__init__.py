"""Provisioning of streams, durables, buckets and logins, and checks that they are present."""
