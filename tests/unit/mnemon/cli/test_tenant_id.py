"""Ids of tenants of `mnemon tenant`: checked before the command connects, and quoted in its suggestions."""

import pytest
from typer.testing import CliRunner

from mnemon.cli.app import app


@pytest.mark.parametrize(
    "arguments",
    [
        ("move", "--to", "nats://127.0.0.1:1", "--to-database", "postgresql://127.0.0.1:1/mnemon"),
        ("confirm", "--to", "nats://127.0.0.1:1", "--to-database", "postgresql://127.0.0.1:1/mnemon"),
        ("revert", "--to", "nats://127.0.0.1:1", "--to-database", "postgresql://127.0.0.1:1/mnemon"),
        ("abandon", "--target-lost"),
        ("status",),
    ],
)
def test_empty_id_is_refused(arguments: tuple[str, ...]) -> None:
    refused = CliRunner().invoke(app, ["tenant", *arguments, ""])
    assert (refused.exit_code, "tenant: an id must not be empty" in refused.stderr) == (2, True)


def test_suggested_command_quotes_the_id_for_a_shell() -> None:
    refused = CliRunner().invoke(app, ["tenant", "abandon", "Tom & Co"])
    assert refused.exit_code == 2
    assert "mnemon tenant abandon 'Tom & Co' --target-lost" in refused.stderr
