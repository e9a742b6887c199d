"""Commands on a deployment, such as `provision`, `migrate`, `status`, `audit`, `auth` and `usage`."""
