"""The HTTP gateway of `mnemon up`, called without a NATS client."""

import asyncio
import json
import re
import shutil
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import uuid4

import httpx
import httpx2
import nats
import pytest

from mnemon.gateway.callers import MAX_OPEN_REQUESTS
from mnemon.gateway.openapi_document import read_document
from mnemon_infra.settings.api_keys import ALL_SCOPES, CACHE_SECONDS, MAX_LOOKUPS, issue_key
from tests.support.processes.programs import run_program
from tests.support.processes.stack import TIMEOUT, Up, mnemon

if TYPE_CHECKING:
    from mcp.client.client import Client

PAGE = Path(__file__).parents[3] / "docs" / "http.md"


def connect(up: Up, key: str | None = None) -> httpx.AsyncClient:
    assert up.endpoints
    assert up.endpoints.gateway
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    return httpx.AsyncClient(base_url=up.endpoints.gateway, headers=headers, timeout=60)


@asynccontextmanager
async def tenant(
    up: Up, scopes: Sequence[str] = ("read", "write"), user: str | None = None
) -> AsyncIterator[httpx.AsyncClient]:
    """Yield an HTTP client with a key of a new tenant."""
    issued = await up.issue_key(f"http-{uuid4().hex[:8]}", scopes, user)
    async with connect(up, issued.text) as client:
        yield client


def said(text: str, **fields: str) -> dict[str, str]:
    return {"role": "user", "content": text, **fields}


async def test_published_and_saved_memory_is_in_the_context(shared: Up) -> None:
    async with tenant(shared) as client:
        published = await client.post("/v1/users/anna/events/message", json=said("My sister is Vera."))
        assert published.status_code == 201
        saved = await client.post("/v1/users/anna/save", json={"text": "Prefers night trains to planes"})
        assert saved.json()["decision"] == "saved"
        context = await client.post(
            "/v1/users/anna/context",
            json={"query": "How do I get to Porto?", "min_seq": saved.json()["seen_seq"]},
        )
        texts = [message["content"] for message in context.json()["messages"]]
        assert any("night trains" in text for text in texts)
        assert any("Vera" in text for text in texts)


async def test_repeated_publish_stores_nothing_twice(shared: Up) -> None:
    async with tenant(shared) as client:
        for number in range(3):
            answer = await client.post(
                "/v1/users/anna/events/message",
                params={"conversation": "c1"},
                json=said("Once."),
                headers={"Idempotency-Key": "m1"},
            )
            assert (answer.status_code, answer.json()["duplicates"]) == (201, min(number, 1))
        events = [{"user": f"u{number}", "message": said("Hello.")} for number in range(300)]
        first, second = [
            (
                await client.post("/v1/events", json={"events": events}, headers={"Idempotency-Key": "b"})
            ).json()
            for _ in range(2)
        ]
        assert (first["count"], first["duplicates"]) == (300, 0)
        assert (second["count"], second["duplicates"]) == (300, 300)
        history = await client.post(
            "/v1/users/anna/history", json={"conversation": "c1", "min_seq": answer.json()["seq"]}
        )
        assert [each["content"] for each in history.json()["messages"]] == ["Once."]
        newest = history.json()["messages"][0]["seq"]
        older = await client.post("/v1/users/anna/history", json={"conversation": "c1", "before": newest})
        assert (older.status_code, older.json()["messages"]) == (200, [])


async def test_idempotency_key_is_the_id_of_the_event_in_any_script(shared: Up) -> None:
    async with tenant(shared) as client:
        path, key = "/v1/users/anna/events/message", {b"Idempotency-Key": "ключ".encode()}
        first = await client.post(path, json=said("Once."), headers=key)
        again = await client.post(path, json=said("Once.", id="ключ"))
        assert (again.json()["seq"], again.json()["duplicates"]) == (first.json()["seq"], 1)
        latin = {b"Idempotency-Key": "clé".encode("latin-1")}
        for refused in (
            await client.post(path, json=said("Twice."), headers=latin),
            await client.post("/v1/users/anna/save", json={"text": "Plays the cello"}, headers=latin),
        ):
            assert (refused.status_code, "is not UTF-8" in refused.json()["detail"]) == (422, True)


async def test_repeated_addition_with_a_key_adds_once(shared: Up) -> None:
    async with tenant(shared) as client:
        for verb, item in (("tasks", "task"), ("document", "document")):
            body = {"action": "add", "text": "Buy milk"}
            replies = [
                (
                    await client.post(f"/v1/users/anna/{verb}", json=body, headers={"Idempotency-Key": key})
                ).json()
                for key in ("t1", "t1", "t2")
            ]
            assert [len(reply[f"{item}s"]) for reply in replies] == [1, 1, 2]
            first, second, other = [reply[f"{item}_id"] for reply in replies]
            assert first == second != other
        key = {"Idempotency-Key": "t1"}
        fact = {"text": "Prefers night trains to planes"}
        saved = (await client.post("/v1/users/anna/save", json=fact, headers=key)).json()
        await client.post("/v1/users/anna/forget", json={"id": saved["id"]}, headers=key)
        again = (await client.post("/v1/users/anna/save", json=fact, headers=key)).json()
        assert (again["decision"], again["id"]) == ("saved", saved["id"]), "the decision on the first request"
        assert (await client.post("/v1/users/anna/read")).json()["facts"] == []


async def test_repeated_change_with_a_key_undoes_no_later_change(shared: Up) -> None:
    async with tenant(shared) as client:

        async def post(verb: str, body: Any, key: str | None = None) -> Any:
            headers = {"Idempotency-Key": key} if key else {}
            answer = await client.post(f"/v1/users/anna/{verb}", json=body, headers=headers)
            assert answer.status_code == 200, answer.text
            return answer.json()

        saved = await post("save", {"text": "Lives in Leeds"})
        first = {"id": saved["id"], "text": "Lives in York"}
        assert (await post("update", first, "k1"))["fact"]["text"] == "Lives in York"
        await post("update", {"id": saved["id"], "text": "Lives in Bath"})
        assert (await post("update", first, "k1"))["fact"]["text"] == "Lives in Bath"
        assert (await post("get", {"id": saved["id"]}))["fact"]["text"] == "Lives in Bath"
        assert (await post("update", first, "k2"))["fact"]["text"] == "Lives in York"
        unchanged = {"id": saved["id"], "text": "Lives in York"}
        await post("update", unchanged, "k3")
        await post("update", {"id": saved["id"], "text": "Lives in Hull"})
        assert (await post("update", unchanged, "k3"))["fact"]["text"] == "Lives in Hull"
        other = await post("save", {"text": "Plays the cello"})
        changed = await post("update", {"id": other["id"], "text": "Plays the viola"}, "k2")
        assert changed["fact"]["text"] == "Plays the viola", "a key belongs to one fact"

        assert (await post("profile", {"fields": {"city": "York"}}, "k1"))["profile"] == {"city": "York"}
        await post("profile", {"fields": {"city": "Bath"}})
        assert (await post("profile", {"fields": {"city": "York"}}, "k1"))["profile"] == {"city": "Bath"}
        assert (await post("profile", {"fields": {"city": "York"}}, "k2"))["profile"] == {"city": "York"}


async def test_change_by_query_takes_no_idempotency_key(shared: Up) -> None:
    async with tenant(shared) as client:
        for verb in "update", "forget":
            refused = await client.post(
                f"/v1/users/anna/{verb}", json={"query": "trains"}, headers={"Idempotency-Key": "f1"}
            )
            assert (refused.status_code, refused.json()["field"]) == (422, "Idempotency-Key")
            assert "send `id` instead of `query`" in refused.json()["detail"]


async def test_id_and_idempotency_key_must_agree(shared: Up) -> None:
    async with tenant(shared) as client:
        answer = await client.post(
            "/v1/users/anna/events/message",
            json=said("Hello.", id="one"),
            headers={"Idempotency-Key": "other"},
        )
        assert (answer.status_code, answer.json()["field"]) == (422, "Idempotency-Key")


async def test_refusals_of_retrieve_name_the_invalid_field(shared: Up) -> None:
    async with tenant(shared) as client:
        refused = await client.post("/v1/users/anna/tasks", json={"action": "add"})
        assert (refused.status_code, refused.json()["code"]) == (422, "bad_request")
        assert refused.json()["field"] == "text"
        saved = await client.post("/v1/users/anna/save", json={"text": "Prefers night trains to planes"})
        body = {"id": saved.json()["id"], "text": "What is the weather like?"}
        refused = await client.post("/v1/users/anna/update", json=body)
        assert (refused.status_code, refused.json()["code"], refused.json()["field"]) == (
            409,
            "refused",
            "text",
        )


async def test_uploaded_document_is_found(shared: Up) -> None:
    async with tenant(shared) as client:
        added = await client.put(
            "/v1/users/anna/documents/timetable",
            params={"title": "Timetable"},
            content="Поезд в Порту уходит в 21:40.".encode("utf-8-sig"),
        )
        assert added.json()["document_id"] == "timetable"
        found = await client.post(
            "/v1/users/anna/get", json={"id": "timetable", "min_seq": added.json()["seen_seq"]}
        )
        assert found.json()["document"]["text"] == "Поезд в Порту уходит в 21:40."
        refused = await client.put("/v1/users/anna/documents/other", content=b"\xff\xfe")
        assert (refused.status_code, refused.json()["field"]) == (422, "body")


@pytest.mark.parametrize("user", ["anna", "a/documents/b"])
@pytest.mark.parametrize("document_id", ["docs/timetable.md", "src/documents/timetable.md"])
async def test_uploaded_document_may_have_slashes_in_its_id(shared: Up, user: str, document_id: str) -> None:
    async with tenant(shared) as client:
        path = f"/v1/users/{quote(user, safe='')}/documents/{quote(document_id, safe='')}"
        added = await client.put(path, content=b"The night train leaves at 21:40.")
        assert (added.status_code, added.json().get("document_id")) == (200, document_id)
        listed = await client.post(f"/v1/users/{quote(user, safe='')}/document")
        assert [each["document_id"] for each in listed.json()["documents"]] == [document_id]


async def test_changes_continue_after_the_last_event(shared: Up) -> None:
    async with tenant(shared) as client:
        for number in range(5):
            await client.post("/v1/users/anna/events/message", json=said(f"Message {number}"))
        seen = await read_changes(client, 3)
        last = str(seen[-1]["seq"])
        rest = asyncio.create_task(read_changes(client, 3, {"Last-Event-ID": last}))
        await client.post("/v1/users/anna/events/message", json=said("Message 5"))
        assert [each["data"]["content"] for each in seen + await rest] == [f"Message {n}" for n in range(6)]
        assert await read_changes(client, 3, params={"lastEventId": last, "after": "0"}) == await rest


async def test_changes_have_events_without_a_body(shared: Up) -> None:
    issued = await shared.issue_key(name := f"http-{uuid4().hex[:8]}")
    assert shared.endpoints
    connection = await nats.connect(shared.endpoints.nats)
    await connection.jetstream().publish(f"chat.{name}.anna.-.started.v1", b"")
    await connection.close()
    async with (
        asyncio.timeout(TIMEOUT),
        connect(shared, issued.text) as client,
        client.stream("GET", "/v1/changes") as answer,
    ):
        lines = answer.aiter_lines()
        while not (line := await anext(lines)).startswith("data: "):
            pass
    change = json.loads(line.removeprefix("data: "))
    assert (change["event"], change["data"]) == ("started", {})


@pytest.mark.parametrize("written", ["+0.0", "1_000", "1e3", "-1", "\u0661", "x", str(2**63)])
async def test_position_that_is_no_whole_number_is_refused(shared: Up, written: str) -> None:
    async with tenant(shared) as client:
        for refused in (
            await client.get("/v1/changes", params={"after": written}),
            await client.get("/v1/changes", headers={b"Last-Event-ID": written.encode()}),
            await client.get("/v1/changes", params={"lastEventId": written}),
        ):
            assert refused.status_code == 422
            assert refused.json()["field"] in ("after", "last-event-id", "lastEventId")


@pytest.mark.parametrize("user", ["a\0b", "я" * 200])
async def test_changes_of_a_user_who_cannot_exist_name_the_field(shared: Up, user: str) -> None:
    async with tenant(shared) as client:
        refused = await client.get("/v1/changes", params={"user": user})
    assert (refused.status_code, refused.json()["field"]) == (422, "user")
    assert refused.json()["detail"].startswith("user: the id ")


async def read_changes(
    client: httpx.AsyncClient,
    count: int,
    headers: dict[str, str] | None = None,
    params: dict[str, str] | None = None,
) -> list[dict[str, dict[str, str]]]:
    """Return the first `count` messages of `/v1/changes`."""
    found = []
    async with (
        asyncio.timeout(TIMEOUT),
        client.stream("GET", "/v1/changes", headers=headers, params=params) as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                change = json.loads(line.removeprefix("data: "))
                found += [change] if change["event"] == "message" else []
            if len(found) == count:
                break
    return found


@pytest.mark.parametrize("path", sorted(read_document()["paths"]))
async def test_another_tenants_key_reaches_nothing(shared: Up, path: str) -> None:
    """The key determines the tenant, so the same user id of another tenant has no memory."""
    async with tenant(shared, ALL_SCOPES) as owner:
        said_at = await owner.post("/v1/users/anna/events/message", json=said("My PIN is in the drawer."))
        saved = await owner.post("/v1/users/anna/save", json={"text": "Has a spare key under the mat"})
        async with tenant(shared, ALL_SCOPES) as other:
            for method, operation in read_document()["paths"][path].items():
                if operation["operationId"] == "changes":
                    await other.post("/v1/users/bert/events/message", json=said("Mine."))
                    (only,) = await read_changes(other, 1)
                    assert only["data"]["content"] == "Mine."
                    continue
                named = path.replace("{user}", "anna").replace("{document_id}", saved.json()["id"])
                body = {"id": saved.json()["id"], "query": "drawer mat", "text": "A new fact about tea"}
                known = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
                fields = schema_fields(known.get("schema", {}))
                answer = await other.request(
                    method, named, json={name: value for name, value in body.items() if name in fields}
                )
                assert "drawer" not in answer.text
                assert "spare key" not in answer.text
        again = await owner.post("/v1/users/anna/history", json={"min_seq": said_at.json()["seq"]})
        assert [each["content"] for each in again.json()["messages"]] == ["My PIN is in the drawer."]
        facts = await owner.post("/v1/users/anna/read", json={"min_seq": saved.json()["seen_seq"]})
        assert [each["text"] for each in facts.json()["facts"]] == ["Has a spare key under the mat"]


def schema_fields(schema: dict[str, str]) -> set[str]:
    name = schema.get("$ref", "").rpartition("/")[2]
    return set(read_document()["components"]["schemas"].get(name, {}).get("properties", ()))


async def test_another_tenants_key_reaches_nothing_over_mcp(shared: Up) -> None:
    assert shared.endpoints
    async with tenant(shared) as owner:
        said_at = await owner.post("/v1/users/anna/events/message", json=said("My PIN is in the drawer."))
        await owner.post("/v1/users/anna/save", json={"text": "Has a spare key under the mat"})
        known = await owner.post("/v1/users/anna/context", json={"min_seq": said_at.json()["seq"]})
        assert "drawer" in known.text
    other = await shared.issue_key(f"http-{uuid4().hex[:8]}")
    async with open_mcp(f"{shared.endpoints.gateway}/mcp", other.text, {"Mnemon-User": "anna"}) as client:
        for tool in (await client.list_tools()).tools:
            required = tool.input_schema.get("required", ())
            told = await client.call_tool(tool.name, dict.fromkeys(required, "drawer spare key mat"))
            assert "drawer." not in str(told)
            assert "under the mat" not in str(told)


# The commands need curl, which no Python package installs.
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
async def test_commands_of_the_page_run(shared: Up, tmp_path: Path) -> None:
    """Run the curl commands of `docs/http.md` as printed there."""
    assert shared.endpoints
    assert shared.endpoints.gateway
    (script,) = re.findall(r"^    (key=.*\n(?:    .*\n)*)", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    script = script.replace("./memory", str(shared.data)).replace(
        "http://127.0.0.1:8080", shared.endpoints.gateway
    )
    script = script.replace("u42", f"u{uuid4().hex[:8]}").replace("curl ", "curl -sSf ")
    setting, _, asking = script.rpartition("curl ")
    assert setting.count("curl ") == 2
    done = await run_program("sh", "-ec", setting, folder=tmp_path)
    assert done.code == 0, done.err
    variables = "".join(setting.splitlines(keepends=True)[:2])
    shown = ("Prefers night trains to planes", "I would rather not fly to Porto.")
    # A person types the next command after the events have become rows; the script has to wait for that.
    async with asyncio.timeout(30):
        while True:
            done = await run_program("sh", "-ec", f"{variables}curl {asking}", folder=tmp_path)
            assert done.code == 0, done.err
            if all(text in done.out for text in shown):
                break


async def test_ids_inject_no_header(shared: Up) -> None:
    """An id with a line break is refused where it would become a header, and accepted in a body."""
    injected = "a\r\nNats-Expected-Stream: OTHER"
    async with tenant(shared) as client:
        event = {"user": "anna", "message": said("x", id=injected)}
        for path, body in (
            ("/v1/events", {"events": [event]}),
            ("/v1/users/anna/events/message", said("x", id=injected)),
            ("/v1/users/anna/events/started", {"id": injected}),
        ):
            answer = await client.post(path, json=body)
            assert (answer.status_code, answer.json()["code"]) == (422, "bad_request"), path
        for key in (b"a\tb", b"\xc3\xa9" * 200, b"a" * 241):
            answer = await client.post(
                "/v1/users/anna/events/message", json=said("x"), headers={b"Idempotency-Key": key}
            )
            assert (answer.status_code, answer.json()["code"]) == (422, "bad_request"), key
        assert (await client.post("/v1/users/anna/status")).json()["messages"] == 0
        user = quote("anna\rX: y", safe="")
        published = await client.post(
            f"/v1/users/{user}/events/message", json=said("Mine."), params={"conversation": injected}
        )
        asked = {"conversation": injected, "min_seq": published.json()["seq"]}
        history = await client.post(f"/v1/users/{user}/history", json=asked)
        assert [each["content"] for each in history.json()["messages"]] == ["Mine."]


@pytest.mark.parametrize("kind", ["application/json", "text/plain", None])
@pytest.mark.parametrize(
    "body",
    [b"{", b"text=Likes+tea", b'{"text": "\xff"}', b"[" * 100_000],
    ids=["cut off", "form", "not UTF-8", "nested"],
)
async def test_malformed_json_is_refused_whatever_its_content_type(
    shared: Up, body: bytes, kind: str | None
) -> None:
    async with tenant(shared) as client:
        headers = {"Content-Type": kind} if kind else {}
        for path in ("save", "history", "events/message"):
            answer = await client.post(f"/v1/users/anna/{path}", content=body, headers=headers)
            assert answer.status_code == 400, answer.text
            assert answer.headers["Content-Type"] == "application/problem+json"
            problem = answer.json()
            assert (problem["code"], problem["field"]) == ("bad_request", "body")
            assert problem["detail"] == "body: is not JSON in UTF-8, or is nested too deeply; correct it"


@pytest.mark.parametrize("kind", ["application/json", "text/plain", None])
async def test_json_is_read_alike_whatever_its_content_type(shared: Up, kind: str | None) -> None:
    async with tenant(shared) as client:
        headers = {"Content-Type": kind} if kind else {}
        for body, field in (
            (b"[]", "body"),
            (b'{"text": "\\ud800"}', "body"),
            (b'{"text": ' + b"[" * 300 + b"]" * 300 + b"}", "body"),
            (b'{"txt": "Likes tea"}', "text"),
        ):
            answer = await client.post("/v1/users/anna/save", content=body, headers=headers)
            assert (answer.status_code, answer.json()["field"]) == (422, field), answer.text


async def test_numbers_that_json_does_not_have_are_refused(shared: Up) -> None:
    event = '{{"user": "anna", "message": {{"role": "user", "content": "x", "metadata": {{"a": {}}}}}}}'
    async with tenant(shared) as client:
        for number in ("NaN", "Infinity", "-Infinity", "1e999"):
            for path, body, field in (
                ("history", f'{{"limit": {number}}}', "limit"),
                ("history", f'{{"min_seq": {number}, "limit": 5.0}}', "min_seq"),
                ("search", f'{{"query": "tea", "threshold": {number}}}', "threshold"),
                ("save", f'{{"text": "Likes green tea", "importance": {number}}}', "importance"),
                ("profile", f'{{"fields": {{"a": [{number}]}}}}', "fields"),
                ("events/message", f'{{"role": "user", "content": {number}}}', "content"),
                ("history", f'{{"limits": {number}}}', "limits"),
            ):
                for kind in ("application/json", "text/plain"):
                    answer = await client.post(
                        f"/v1/users/anna/{path}", content=body, headers={"Content-Type": kind}
                    )
                    assert (answer.status_code, field in answer.json()["field"]) == (422, True), answer.text
            answer = await client.post("/v1/events", content=f'{{"events": [{event.format(number)}]}}')
            assert (answer.status_code, "metadata" in answer.json()["field"]) == (422, True), answer.text


async def test_keys_permit_their_scopes_and_user_only(shared: Up) -> None:
    async with tenant(shared, ["read"], "anna") as client:
        assert (await client.post("/v1/users/anna/history")).status_code == 200
        for path, body in (
            ("/v1/users/anna/events/message", said("x")),
            ("/v1/users/anna/save", {"text": "x"}),
            ("/v1/users/anna/profile", {"fields": {"a": 1}}),
            ("/v1/users/anna/erase", {}),
            ("/v1/users/bert/history", {}),
            ("/v1/events", {"events": [{"user": "anna", "message": said("x")}]}),
        ):
            answer = await client.post(path, json=body)
            assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), path
        assert (await client.get("/v1/changes")).status_code == 403
        assert (await client.post("/v1/users/anna/profile")).status_code == 200, "reads only"


async def test_absent_and_wrong_keys_are_refused(shared: Up) -> None:
    async with connect(shared) as client:
        answer = await client.post("/v1/users/anna/history")
        assert (answer.status_code, answer.headers["WWW-Authenticate"]) == (401, "Bearer")
        assert answer.headers["Content-Type"] == "application/problem+json"


async def test_wrong_keys_lock_out_no_right_key(shared: Up) -> None:
    issued = await shared.issue_key("behind-a-proxy")
    async with connect(shared, "wrong") as wrong, connect(shared, issued.text) as right:
        while (await wrong.post("/v1/users/anna/history")).status_code != 429:
            pass
        assert (await right.post("/v1/users/anna/history")).status_code == 200
        # A right key lifts the lock of its address, which all tests share.
        assert (await wrong.post("/v1/users/anna/history")).status_code == 401


async def test_flood_of_wrong_keys_refuses_no_known_key(shared: Up) -> None:
    """Unknown keys get 401, 429 or 503, each with a reason; a known key is answered meanwhile."""
    async with tenant(shared) as client, AsyncExitStack() as stack:
        assert (await client.post("/v1/users/anna/history")).status_code == 200
        found: Counter[int] = Counter()
        async with asyncio.timeout(TIMEOUT):
            while not found[503]:
                connections = [
                    await asyncio.open_connection(client.base_url.host, client.base_url.port)
                    for _ in range(3 * MAX_LOOKUPS)
                ]
                for _, writer in connections:
                    stack.callback(writer.close)
                    writer.write(
                        "GET /v1/changes HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                        f"Authorization: Bearer {issue_key('x').text}\r\n\r\n".encode()
                    )
                known = asyncio.create_task(client.post("/v1/users/anna/history"))
                for reader, _ in connections:
                    answer = await reader.read()
                    found[status := int(answer.split()[1])] += 1
                    assert (b"retry-after: " in answer) == (status != 401), answer
                assert (await known).status_code == 200
        assert not found.keys() - {401, 429, 503}
        # A right key lifts the lock of its address, which all tests share.
        assert (await client.post("/v1/users/anna/history")).status_code == 200


@pytest.mark.long
async def test_revoked_key_is_refused_within_seconds(shared: Up) -> None:
    issued = await shared.issue_key("revoked")
    async with connect(shared, issued.text) as client:
        assert (await client.post("/v1/users/anna/history")).status_code == 200
        assert (await mnemon("auth", "key", "revoke", issued.stored.id, "--data", shared.data)).code == 0
        async with asyncio.timeout(CACHE_SECONDS + TIMEOUT):
            while (await client.post("/v1/users/anna/history")).status_code != 401:
                await asyncio.sleep(0.5)
    assert (await mnemon("auth", "key", "revoke", issued.stored.id, "--data", shared.data)).code == 1


@pytest.mark.long
async def test_revoked_key_ends_its_open_stream(shared: Up) -> None:
    issued = await shared.issue_key("revoked-in-a-stream")
    async with connect(shared, issued.text) as client:
        await client.post("/v1/users/anna/events/message", json=said("Before."))
        async with client.stream("GET", "/v1/changes") as answer:
            lines = answer.aiter_lines()
            while not (await anext(lines)).startswith("data: "):
                pass
            assert (await mnemon("auth", "key", "revoke", issued.stored.id, "--data", shared.data)).code == 0
            async with asyncio.timeout(2 * CACHE_SECONDS + TIMEOUT):
                assert "data: " not in "".join([line async for line in lines]), "no event comes, and it ends"


async def test_slow_bodies_without_a_key_hold_no_place(shared: Up) -> None:
    """Clients without a key send bodies that never end: they take none of the gateway's open requests."""
    async with tenant(shared) as client, AsyncExitStack() as stack:
        headers = "POST /v1/users/anna/save HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"
        readers = []
        for _ in range(MAX_OPEN_REQUESTS + 8):
            reader, writer = await asyncio.open_connection(client.base_url.host, client.base_url.port)
            stack.callback(writer.close)
            writer.write(headers.encode())
            readers.append(reader)
        async with asyncio.timeout(TIMEOUT):
            for reader in readers:
                assert (await reader.readline()).split()[1] == b"401"
            assert (await client.post("/v1/users/anna/history")).status_code == 200


async def test_fields_of_all_bodies_are_checked(shared: Up) -> None:
    event: dict[str, object] = {"user": "anna", "message": said("Hello.")}
    async with tenant(shared) as client:
        for path, body, field in (
            ("/v1/events", {"events": [event], "evnets": []}, "evnets"),
            ("/v1/events", {"events": [{**event, "convresation": "c1"}]}, "convresation"),
            ("/v1/users/anna/history", {"limit": True}, "limit"),
            ("/v1/users/anna/history", {"limit": "5"}, "limit"),
            ("/v1/users/anna/search", {"query": "tea", "min_seq": False}, "min_seq"),
            ("/v1/users/anna/events/message?conversation=", said("Hello."), "conversation"),
        ):
            answer = await client.post(path, json=body)
            assert (answer.status_code, field in answer.json()["field"]) == (422, True), answer.text
        assert (await client.post("/v1/users/anna/history", json={"limit": 5.0})).status_code == 200
        assert (await client.post("/v1/events", content=json.dumps({"events": [event]}))).status_code == 201


@pytest.mark.parametrize(
    ("message", "field"),
    [(said("x" * 1_048_576), "events.1.message"), (said("x", id=" m1"), "events.1.message.id")],
    ids=["too large", "unfit id"],
)
async def test_event_that_cannot_be_sent_is_named(shared: Up, message: dict[str, str], field: str) -> None:
    async with tenant(shared) as client:
        events = [{"user": "anna", "message": said("Hello.")}, {"user": "anna", "message": message}]
        refused = await client.post("/v1/events", json={"events": events})
        assert (refused.status_code, refused.json()["field"]) == (422, field)
        assert (await client.post("/v1/users/anna/status")).json()["messages"] == 0


@pytest.mark.parametrize(
    ("content", "status", "field"),
    [
        pytest.param(b"{", 422, "body", id="no JSON"),
        pytest.param(b'{"role":"user"}', 422, "content", id="missing"),
        pytest.param(b'{"role":"user","content":"x","contnet":"y"}', 422, "contnet", id="misspelled"),
        pytest.param(b'{"role":"user","content":"x","id":"a\\r\\nX: y"}', 422, "id", id="header injection"),
        pytest.param(b'{"role":"user","content":"\\u0000"}', 422, "content", id="NUL"),
        pytest.param(b'{"role":"user","content":"\\ud800"}', 422, "body", id="surrogate"),
        pytest.param(b'{"role":"user","content":"x","metadata":{"a":NaN}}', 422, "metadata.a", id="NaN"),
        pytest.param(b" " * 10_000_000, 413, None, id="large"),
    ],
)
async def test_invalid_bodies_are_named(shared: Up, content: bytes, status: int, field: str | None) -> None:
    async with tenant(shared) as client:
        for headers in ({"Content-Type": "application/json"}, {"Content-Type": "text/plain"}):
            answer = await client.post("/v1/users/anna/events/message", content=content, headers=headers)
            assert answer.status_code in (status, 400 if field == "body" else status), answer.text
            assert answer.headers["Content-Type"] == "application/problem+json"
            assert answer.json().get("field") == field or field == "metadata.a"


async def test_rate_of_a_tenant_is_limited(shared: Up) -> None:
    issued = await shared.issue_key("hasty")
    limit = await mnemon(
        *("settings", "set", "--tenant", "hasty", "rates.requests_per_second=1", "--data", shared.data)
    )
    assert limit.code == 0, limit.err
    async with connect(shared, issued.text) as client, asyncio.timeout(TIMEOUT):
        refused = None
        while refused is None:
            # Sequential requests may be slower than the limit.
            answers = await asyncio.gather(*(client.post("/v1/users/anna/history") for _ in range(10)))
            refused = next((each for each in answers if each.status_code != 200), None)
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, "1")
    assert refused.json()["retryable"] is True


async def test_description_needs_no_other_host(shared: Up) -> None:
    async with connect(shared) as client:
        assert (await client.get("/openapi.json")).json() == read_document()
        page = (await client.get("/docs")).text
        assert "//" not in page.replace(str(client.base_url), "").replace("http://www.w3.org", "")
        for part in ("swagger-ui-bundle.js", "swagger-ui.css"):
            assert part in page
            assert (await client.get(f"/static-offline-docs/{part}")).status_code == 200
        assert (await client.get("/readyz")).status_code == 204


async def test_probes_answer_requests_for_headers_only(shared: Up) -> None:
    async with connect(shared) as client:
        for probe in ("/healthz", "/readyz"):
            assert (await client.head(probe)).status_code == 204


async def test_clients_of_mcp_use_the_same_keys(shared: Up) -> None:
    assert shared.endpoints
    address = f"{shared.endpoints.gateway}/mcp"
    writing = await shared.issue_key("mcp-over-http")
    reading = await mnemon(
        *("auth", "key", "create", "--tenant", "mcp-over-http", "--scope", "read", "--user", "anna"),
        *("--json", "--data", shared.data),
    )
    async with open_mcp(address, writing.text, {"Mnemon-User": "anna"}) as client:
        saved = await client.call_tool("memory_save", {"text": "Prefers night trains to planes"})
        assert saved.structured_content
        assert saved.structured_content["decision"] == "saved"
    async with open_mcp(address, json.loads(reading.out)["key"], {}) as client:
        found = await client.call_tool("memory_read", {})
        assert "night trains" in str(found.structured_content), "the user of the key"
        refused = await client.call_tool("memory_save", {"text": "Likes tea"})
        assert refused.is_error
        assert "forbidden: the key lacks the scope `write`" in str(refused.content)


async def test_clients_of_mcp_name_no_other_user_than_their_key(shared: Up) -> None:
    from mcp.shared.exceptions import MCPError

    assert shared.endpoints
    address = f"{shared.endpoints.gateway}/mcp"
    for_anna = await shared.issue_key("mcp-over-http", user="anna")
    async with connect(shared, for_anna.text) as rest:
        detail = (await rest.post("/v1/users/bert/read", json={})).json()["detail"]
    async with open_mcp(address, for_anna.text, {"Mnemon-User": "bert"}) as client:
        for tool, arguments in (("memory_read", {}), ("memory_save", {"text": "Prefers tea to coffee"})):
            refused = await client.call_tool(tool, arguments)
            assert refused.is_error
            assert f"forbidden: {detail}" in str(refused.content)
        with pytest.raises(MCPError, match="for one user"):
            await client.read_resource("mnemon://context")
    async with open_mcp(address, for_anna.text, {"Mnemon-User": "anna"}) as client:
        assert not (await client.call_tool("memory_read", {})).is_error


@asynccontextmanager
async def open_mcp(address: str, key: str, headers: dict[str, str]) -> AsyncIterator["Client"]:
    from mcp.client.client import Client
    from mcp.client.streamable_http import streamable_http_client

    sent = {"Authorization": f"Bearer {key}", **headers}
    async with (
        httpx2.AsyncClient(headers=sent, timeout=60) as http,
        Client(streamable_http_client(address, http_client=http)) as client,
    ):
        yield client


async def test_idle_clients_of_mcp_hold_no_request_open(shared: Up) -> None:
    async with tenant(shared) as client:
        listening = client.build_request("GET", "/mcp", headers={"Accept": "text/event-stream"})
        # `stream=True`: an accepted request would open a stream that does not end
        refused = await client.send(listening, stream=True)
        assert (refused.status_code, refused.headers["Allow"]) == (405, "POST")
        await refused.aclose()


async def test_metadata_tells_clients_of_mcp_to_send_a_key(shared: Up) -> None:
    async with connect(shared) as client:
        refused = await client.post("/mcp", json={})
        told = re.fullmatch(r'Bearer resource_metadata="(.*)"', refused.headers["WWW-Authenticate"])
        assert (refused.status_code, bool(told)) == (401, True)
        assert told
        described = (await client.get(told[1])).json()
        assert described["resource"] == f"{str(client.base_url).rstrip('/')}/mcp"
