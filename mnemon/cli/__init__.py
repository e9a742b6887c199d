"""The `mnemon` command: one module per command, registered in `app`."""
