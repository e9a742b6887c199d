"""Queries on facts and the decisions about them."""
