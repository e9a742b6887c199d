"""Origins that `mnemon gateway --allow-origin` accepts."""

import pytest
from typer.testing import CliRunner

from mnemon.cli.app import app


@pytest.mark.parametrize(
    "origin", ["", "chat.example.com", "https://chat.example.com/", "https://a.example/chat"]
)
def test_text_that_no_browser_sends_as_an_origin_is_refused(origin: str) -> None:
    refused = CliRunner().invoke(app, ["gateway", "--port", "0", "--allow-origin", origin])
    assert refused.exit_code == 2
    assert f"{origin!r} of --allow-origin is not an origin" in refused.output


@pytest.mark.parametrize(
    "origin", ["https://chat.example.com", "http://127.0.0.1:5173", "http://[::1]:8080", "*", "null"]
)
def test_origin_of_a_browser_is_accepted(monkeypatch: pytest.MonkeyPatch, origin: str) -> None:
    monkeypatch.delenv("MNEMON_NATS_URL", raising=False)
    done = CliRunner().invoke(app, ["gateway", "--port", "0", "--allow-origin", origin])
    assert "is not an origin" not in done.output
    assert "MNEMON_NATS_URL" in done.output, "the next check: which servers"
