"""Provisioning and checks of streams, durables and buckets, restoration of the log, and files of logins."""
