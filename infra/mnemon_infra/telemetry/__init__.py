"""What the system says about itself."""
