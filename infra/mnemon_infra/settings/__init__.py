"""Run-time settings, which every process follows.

Functions that read or write a bucket raise `nats.errors.Error` if the server does not answer, and
`SettingsNotProvisioned` if the bucket is absent. Those that take a tenant raise
`mnemon_contracts.subjects.InvalidId` if the id cannot be a tenant's.
"""
