"""Command `mnemon tenant`: move a tenant to another deployment."""
