"""Checks answers of a model against their sources, decides their outcome and publishes them."""
