"""Schemas, AsyncAPI and pages, generated from the contracts."""
