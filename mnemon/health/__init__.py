"""How a deployment fares: what `mnemon status` and the admin page show."""
