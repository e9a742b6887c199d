"""Transports: lone surrogates in the standard input, and over HTTP the wait after wrong tokens."""

import json

import httpx
import pytest

from mnemon.http.login_attempts import LoginAttempts
from mnemon.mcp.server import McpTarget, NoUser, create_server
from mnemon.mcp.transports import PATH, create_http_application, replace_lone_surrogates


def refuse_target(_: object) -> McpTarget:
    raise NoUser


async def test_a_wait_is_rounded_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LoginAttempts, "get_wait", lambda *_: 0.3)
    application = create_http_application(create_server(refuse_target), "127.0.0.1", "a token of this test")
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        answer = await client.post(PATH, json={})
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "1")
    assert answer.text == "Too many wrong tokens. Try again in 1 s.\n"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r'"a\ud83d"', "a\ufffd"),
        (r'"\uDE00a"', "\ufffda"),
        (r'"\ud83d\ud83d\ude00"', "\ufffd😀"),
        (r'"\ude00\ud83d"', "\ufffd\ufffd"),
        (r'"\\\ud83d"', "\\\ufffd"),
        (r'"\\ud83d \\\\ud83d"', r"\ud83d \\ud83d"),
        (r'"\uD83D\uDE00\n\ud7ff"', "😀\n\ud7ff"),
    ],
)
def test_lone_surrogates_are_replaced(written: str, read: str) -> None:
    assert json.loads(replace_lone_surrogates(written)) == read
