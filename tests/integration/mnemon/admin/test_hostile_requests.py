"""Requests with invalid addresses and forms get an error page that names the problem, never a status 5xx."""

import re
from collections.abc import AsyncIterator, Iterable, Iterator
from itertools import islice
from pathlib import Path
from urllib.parse import urlencode

import httpx
import pytest
import pytest_asyncio
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from mnemon.admin.application import create_application
from mnemon.admin.connections import ServerConnections
from mnemon.admin.session.access import Access
from mnemon_consumers.app import run_consumers
from mnemon_infra.config import Deployment
from tests.support.admin.http_browser import ADDRESS, words
from tests.support.servers.qdrant import locate_vectors

TOKEN = "the token of a test"
ORIGIN = {"origin": ADDRESS}

QUERY = "x-query"
"""Header that carries the query string, because httpx parses long addresses slowly."""

HOSTILE = (
    *("", "a\0b", "9" * 5000, "9" * 19, "-1", "1e400", "\u0663", "[" * 2_000, "Ж" * 300, "{}"),
    "0001-01-01T00:00:00+14:00",
)

FIELDS = (
    *("tenant", "user", "conversation", "name", "id", "seq", "before", "since", "limit", "budget", "format"),
    *("query", "q", "begins", "after", "days", "by", "state", "group", "revision", "importance", "value"),
    *("text", "due_at", "expires_at", "kind", "tier", "consumer", "reason", "which", "confirmed", "action"),
    *("task_id", "key", "next", "letter.1", "shown.x", "was.prices", "prices.0.model", "prices.0.input"),
)

ROUTES = [
    (path, method)
    for path, method in sorted(
        (each.path, method)
        for each in create_application(ServerConnections(Deployment()), Access(TOKEN)).routes
        if isinstance(each, Route)
        for method in each.methods or ()
        if method != "HEAD"
    )
    if path != "/logout"
]


@pytest_asyncio.fixture
async def stranger(deployment: Deployment, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """HTTP client of the admin page without a login, with a running deployment."""
    deployment = locate_vectors(deployment, tmp_path / "vectors")
    parts = ServerConnections(deployment)
    application = create_application(parts, Access(TOKEN))

    async def move_query(scope: Scope, receive: Receive, send: Send) -> None:
        scope["query_string"] = dict(scope["headers"]).get(QUERY.encode(), scope["query_string"])
        await application(scope, receive, send)

    transport = httpx.ASGITransport(move_query)
    async with (
        run_consumers(("persist", "index", "dedupe", "retrieve"), deployment),
        parts.close_at_end(),
        httpx.AsyncClient(transport=transport, base_url=ADDRESS, headers=ORIGIN) as client,
    ):
        yield client


@pytest_asyncio.fixture
async def visitor(stranger: httpx.AsyncClient) -> httpx.AsyncClient:
    """The same client, logged in."""
    await stranger.post("/login", data={"token": TOKEN})
    return stranger


def addresses(path: str) -> list[str]:
    return [path.format(id=value) for value in ("9" * 5000, "%00", "-1", "%D9%A3")] if "{" in path else [path]


async def sent(
    client: httpx.AsyncClient, method: str, path: str, fields: dict[str, str], kept: dict[str, str]
) -> list[httpx.Response]:
    """Send `fields` with `kept`, and return the responses; a GET splits long values into several requests."""
    if method == "POST":
        return [await client.post(path, data=fields | kept)]
    parts = batched(fields.items(), 8 if max(map(len, fields.values())) > 100 else len(fields))
    return [await client.get(path, headers={QUERY: urlencode(dict(part) | kept)}) for part in parts]


def batched(items: Iterable[tuple[str, str]], size: int) -> Iterator[list[tuple[str, str]]]:
    left = iter(items)
    while part := list(islice(left, size)):
        yield part


async def test_hostile_requests_before_login_are_refused(stranger: httpx.AsyncClient) -> None:
    for path, method in ROUTES:
        for address in addresses(path):
            for value in ("", "a\0b", "9" * 5000):
                for answer in await sent(stranger, method, address, dict.fromkeys(FIELDS, value), {}):
                    assert answer.status_code < 500, (method, path, value[:10])


async def test_a_form_in_another_encoding_is_refused(stranger: httpx.AsyncClient) -> None:
    body = b'--x\r\nContent-Disposition: form-data; name="token"\r\n\r\n\\ud800\r\n--x--\r\n'
    kind = "multipart/form-data; boundary=x; charset=raw_unicode_escape"
    answer = await stranger.post("/login", content=body, headers={"content-type": kind})
    assert (answer.status_code, "token: contains a lone surrogate" in answer.text) == (400, True)


@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize(
    ("values", "alone"),
    [(HOSTILE[:4], ()), pytest.param(HOSTILE[4:], FIELDS, marks=pytest.mark.long)],
    ids=["some values", "other values"],
)
async def test_hostile_requests_after_login_get_an_error_page(
    visitor: httpx.AsyncClient, method: str, values: tuple[str, ...], alone: tuple[str, ...]
) -> None:
    page = (await visitor.get("/users")).text
    proof = {"proof": re.findall(r'name="proof" value="(\w+)"', page)[0]}
    owner = proof | {"tenant": "acme", "user": "u1"}
    for path, of in ROUTES:
        if of != method:
            continue
        for address in addresses(path):
            for value in values:
                for kept in (proof, owner):
                    for answer in await sent(visitor, method, address, dict.fromkeys(FIELDS, value), kept):
                        assert answer.status_code < 500, (path, value[:10], kept, words(answer.text))
        for name in alone:  # one field at a time, because a page refuses at the first invalid field
            field = {name: "9" * 5000}
            for answer in await sent(visitor, method, addresses(path)[0], owner | field, {}):
                assert answer.status_code < 500, (path, name, words(answer.text))
        for answer in await sent(visitor, method, addresses(path)[0], {"": ""}, proof):
            assert answer.status_code < 500, (path, "nothing", words(answer.text))


async def test_a_field_that_is_missing_is_named(visitor: httpx.AsyncClient) -> None:
    proof = re.findall(r'name="proof" value="(\w+)"', (await visitor.get("/users")).text)[0]
    for path, field in (
        ("/dead/go-on", "consumer"),
        ("/rebuilds/confirm", "name"),
        ("/rebuilds/drop", "name"),
        ("/settings/save", "group"),
        ("/settings/unset", "name"),
        ("/settings/rollback", "revision"),
    ):
        answer = await visitor.post(path, data={"proof": proof})
        assert (answer.status_code, f"{field}: is missing" in answer.text) == (400, True), path


async def test_the_login_page_names_no_folder() -> None:
    parts = ServerConnections(Deployment(), Path("/srv/secret-place"))
    transport = httpx.ASGITransport(create_application(parts, Access(TOKEN)))
    async with httpx.AsyncClient(transport=transport, base_url=ADDRESS) as client:
        page = (await client.get("/login")).text
    assert "secret-place" not in page
    assert "admin/token" in page
