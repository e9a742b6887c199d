"""Login to the admin page, and protection against cross-site requests."""

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest
import pytest_asyncio

from mnemon.admin.application import create_application
from mnemon.admin.connections import ServerConnections
from mnemon.admin.session.access import Access
from mnemon.admin.session.ended_sessions import read_ended_sessions
from mnemon.http.login_attempts import LoginAttempts
from mnemon_infra.config import Deployment

TOKEN = "a token of this test"
ORIGIN = {"origin": "http://127.0.0.1:8765"}


@pytest_asyncio.fixture
async def browser(tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """HTTP client of the admin page without a login and without servers."""
    access = Access(TOKEN, ["a link"], ended=read_ended_sessions(tmp_path))
    page = create_application(ServerConnections(Deployment()), access, ["memory.example"])
    async with AsyncExitStack() as ends:
        transport = httpx.ASGITransport(page)
        yield await ends.enter_async_context(
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8765")
        )


async def log_in(browser: httpx.AsyncClient, **form: str) -> httpx.Response:
    return await browser.post("/login", data=form or {"token": TOKEN}, headers=ORIGIN)


async def proof(browser: httpx.AsyncClient) -> str:
    found = re.search(r'name="proof" value="(\w+)"', (await browser.get("/")).text)
    assert found, "every page has the form that logs out"
    return found[1]


async def test_pages_require_the_token(browser: httpx.AsyncClient) -> None:
    answer = await browser.get("/?tenant=acme")
    assert (answer.status_code, answer.headers["location"]) == (303, "/login?next=%2F%3Ftenant%3Dacme")
    refused = await log_in(browser, token="another", next="/users")
    assert (refused.status_code, "Wrong token." in refused.text) == (403, True)
    assert "set-cookie" not in refused.headers
    assert (await browser.get("/", headers={"x-fragment": "1"})).status_code == 401


async def test_session_belongs_to_one_browser(browser: httpx.AsyncClient, tmp_path: Path) -> None:
    answer = await log_in(browser, token=TOKEN, next="//evil.example/")
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    page = await browser.get("/")
    assert page.status_code == 503, "logged in: nothing answers, and that is said"
    assert "The broker does not answer" in page.text
    assert page.headers["cache-control"] == "no-store"
    assert "'unsafe" not in page.headers["content-security-policy"]
    part = await browser.get("/overview/live", headers={"x-fragment": "1"})
    assert ("The broker does not answer" in part.text, "<html" in part.text) == (True, False)

    name, value = next(iter(browser.cookies.items()))
    out = await browser.post("/logout", data={"proof": await proof(browser)}, headers=ORIGIN)
    assert out.headers["location"] == "/login"
    browser.cookies.set(name, value, domain="127.0.0.1")
    assert (await browser.get("/")).status_code == 303, "a kept cookie of a session that was ended"
    assert Access(TOKEN).get_session(value)
    assert not Access(TOKEN, ended=read_ended_sessions(tmp_path)).get_session(value), (
        "by a process begun anew, too"
    )
    assert not Access("another token").get_session(value)
    browser.cookies.set(name, value[:-1], domain="127.0.0.1")
    assert (await browser.get("/")).status_code == 303


async def test_a_link_logs_in_once(browser: httpx.AsyncClient) -> None:
    assert 'name="key"' in (await browser.get("/login?key=a+link")).text, "to be looked at is no use of it"
    assert (await log_in(browser, key="a link")).status_code == 303
    again = await log_in(browser, key="a link")
    assert (again.status_code, "was used" in again.text) == (403, True)


async def test_failed_logins_are_slowed_down(browser: httpx.AsyncClient) -> None:
    codes = [(await log_in(browser, token=f"guess {number}")).status_code for number in range(7)]
    assert codes == [403] * 6 + [429]
    assert (await log_in(browser)).status_code == 429, "the right one waits too"


async def test_a_wait_is_rounded_up(browser: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LoginAttempts, "get_wait", lambda *_: 0.3)
    answer = await log_in(browser)
    assert (answer.status_code, answer.headers["retry-after"]) == (429, "1")
    assert "Try again in 1 s." in answer.text


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"host": "rebound.example"}, 421),
        ({"host": "memory.example", "origin": "https://memory.example"}, 303),
        ({"host": "[::1]:8765", "origin": "http://[::1]:8765"}, 303),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({}, 403),
        ({"origin": "http://["}, 403),
    ],
)
async def test_request_from_another_site_is_refused(
    browser: httpx.AsyncClient, headers: dict[str, str], code: int
) -> None:
    answer = await browser.post("/login", data={"token": TOKEN}, headers=headers)
    assert answer.status_code == code
    is_secure = "; secure" in answer.headers.get("set-cookie", "").lower()
    assert is_secure == ("https://memory" in headers.get("origin", ""))


async def test_a_form_without_its_proof_changes_nothing(browser: httpx.AsyncClient) -> None:
    await log_in(browser)
    answer = await browser.post("/logout", data={"proof": "guessed"}, headers=ORIGIN)
    assert (answer.status_code, "The form was refused" in answer.text) == (403, True)
    assert (await browser.get("/")).status_code == 503, "still logged in"
