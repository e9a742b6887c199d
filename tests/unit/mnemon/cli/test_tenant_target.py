"""The target deployment of `mnemon tenant move`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import typer

from mnemon.cli import tenant as tenant_command
from mnemon.cli.tenant import MoveTarget

HERE = "nats://127.0.0.1:4222"
OTHER = "nats://127.0.0.1:4223"
DATABASE = "postgresql://127.0.0.1:1/mnemon"


@pytest.fixture(autouse=True)
def _servers(monkeypatch: pytest.MonkeyPatch) -> None:
    @asynccontextmanager
    async def open_nothing(*_: object) -> AsyncIterator[None]:
        yield

    monkeypatch.setenv("MNEMON_NATS_URL", HERE.replace("//", "//operator:secret@"))
    monkeypatch.setenv("DATABASE_URL", DATABASE)
    monkeypatch.setattr(tenant_command, "_open_site", open_nothing)


async def open_addresses(to: str, address: str | None) -> tuple[str, str]:
    target = MoveTarget(to, DATABASE)
    async with tenant_command._open_sites("acme", target, None, address) as (_, _, addresses):
        return addresses


async def test_same_deployment_is_refused_whatever_address_bots_get(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(typer.Exit) as ended:
        await open_addresses(HERE, "nats://b:4222")
    assert ended.value.exit_code == 2
    assert "--to names the deployment that the command already uses" in capsys.readouterr().err


async def test_bots_may_get_the_former_address_for_another_deployment() -> None:
    assert await open_addresses(OTHER, HERE) == (HERE, HERE)
    assert await open_addresses(OTHER, None) == (HERE, OTHER)
