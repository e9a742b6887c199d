"""What models cost, and what a tenant may still spend. Shared by those that ask models."""
