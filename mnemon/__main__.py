"""The `mnemon` command; also `python -m mnemon`."""

import sys

_PART_MISSING = 3


def main() -> None:
    """Run the command, or print how to install its dependencies: the base install lacks them."""
    try:
        from mnemon.cli.app import app
        from mnemon.cli.terminal.standard_output import end_on_output_error

        with end_on_output_error():
            app()
    except ModuleNotFoundError as error:
        print(f"mnemon: {error.name} is not installed: pip install 'mnemon[all]'", file=sys.stderr)
        sys.exit(_PART_MISSING)


if __name__ == "__main__":
    main()
