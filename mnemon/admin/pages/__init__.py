"""The pages. Each module has a `Pages`, which `mnemon.admin.application` puts together."""
