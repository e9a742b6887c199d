"""Run-time settings, which every process follows, residences of tenants, and API keys of the gateway.

Functions that read or write a bucket raise `nats.errors.Error` if the server does not answer. If the bucket
is absent, they raise `SettingsNotProvisioned`, or for the bucket of API keys `ApiKeysNotProvisioned`.
Functions that read or write a tenant's settings or residence in the bucket raise
`mnemon_contracts.subjects.InvalidId` if the id cannot be a tenant's.
"""
