"""Move of a tenant to another deployment: copy, verification, switch, and the way back."""
