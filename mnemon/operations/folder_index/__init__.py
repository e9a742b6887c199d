"""Documents kept in step with a folder."""
