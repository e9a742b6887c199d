"""The pages. Each module has a `PageSection` named `pages`; `mnemon.admin.application` collects them."""
