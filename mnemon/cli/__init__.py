"""The `mnemon` command: packages hold the subcommands by domain, and `mnemon.cli.app` registers them."""
