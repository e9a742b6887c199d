"""Commands on a deployment: provisioning, status, logins, cost."""
