"""Move of a tenant to another deployment: copy, verification, switch, revert and abandonment."""
