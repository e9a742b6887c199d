"""Ids of tenants that `mnemon tenant` accepts, checked before the command connects to a server."""

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
