"""Health of a deployment, as `mnemon status` and the admin page show it."""
