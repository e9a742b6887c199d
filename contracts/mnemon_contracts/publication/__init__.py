"""Generators of the JSON Schemas, the AsyncAPI document and the pages, and the check of released schemas."""
