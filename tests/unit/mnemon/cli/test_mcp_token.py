"""Token of `mnemon mcp --http`: short tokens are refused, and guesses are limited."""

import httpx
import pytest
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send
from typer.testing import CliRunner

from mnemon.cli.app import app
from mnemon.mcp.transports import _TokenGuard

TOKEN = "a token that nobody guesses"


async def _served(scope: Scope, receive: Receive, send: Send) -> None:
    await PlainTextResponse("memory")(scope, receive, send)


async def test_wrong_tokens_are_slowed_down() -> None:
    transport = httpx.ASGITransport(_TokenGuard(_served, TOKEN))
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8931") as client:

        async def status(**headers: str) -> int:
            return (await client.post("/mcp", headers=headers)).status_code

        assert await status(authorization=f"Bearer {TOKEN}") == 200
        assert [await status() for _ in range(9)] == [401] * 9, "no guesses"
        guesses = [await status(authorization=f"Bearer {number}") for number in range(8)]
        assert guesses == [401] * 6 + [429] * 2
        assert await status(authorization=f"Bearer {TOKEN}") == 429, "the right one waits too"


def test_a_short_token_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMON_MCP_TOKEN", "a")
    monkeypatch.setenv("MNEMON_NATS_URL", "nats://127.0.0.1:1")
    refused = CliRunner().invoke(app, ["mcp", "--tenant", "acme", "--http", "0"])
    assert refused.exit_code == 2
    assert "MNEMON_MCP_TOKEN has 1 character" in refused.output
