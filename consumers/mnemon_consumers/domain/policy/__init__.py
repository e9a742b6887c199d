"""Policy: rules on which facts may be kept, and until when."""
