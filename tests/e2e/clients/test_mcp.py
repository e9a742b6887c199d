"""`mnemon mcp`, called through the official client library."""

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx2
import nats
import pytest
from nats.aio.subscription import Subscription

from mnemon import MemoryClient
from mnemon_contracts.function_tools import list_definitions
from tests.support.patience import PATIENT
from tests.support.processes.chat_session import talk
from tests.support.processes.stack import TIMEOUT, Up, mnemon, start_mnemon, until

if TYPE_CHECKING:
    from mcp import types
    from mcp.client.client import Client


INITIALIZATION: dict[str, Any] = {
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2024-11-05",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    },
}


async def call(client: "Client", tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    value: dict[str, Any] = result.structured_content
    return value


def text(result: "types.CallToolResult") -> str:
    from mcp import types

    (block,) = result.content
    assert isinstance(block, types.TextContent)
    return block.text


@asynccontextmanager
async def overheard(up: Up, subject: str) -> AsyncIterator[Subscription]:
    assert up.endpoints
    connection = await nats.connect(up.endpoints.nats)
    asked = await connection.subscribe(subject)
    await connection.flush()
    yield asked
    await connection.close()


@asynccontextmanager
async def run_stdio_server(
    up: Up, folder: Path, *requests: dict[str, Any], invalid: bytes = b""
) -> AsyncIterator[tuple[Any, Path]]:
    """Start `mnemon mcp`, and send invalid lines and requests; yield the process and the file of its answers.

    The standard input stays open for the duration of the block.
    """
    answers = folder / "answers"
    reading, writing = os.pipe()
    with (
        os.fdopen(reading, "rb"),
        os.fdopen(writing, "wb", buffering=0) as questions,
        answers.open("wb") as output,
        (folder / "errors").open("wb") as errors,
    ):
        process = await start_mnemon(
            *("mcp", "--tenant", "mcp", "--user", "anna", "--data", up.data),
            environment={},
            source=reading,
            output=output,
            errors=errors,
        )
        questions.write(invalid)
        for request in (INITIALIZATION, *requests):
            questions.write(json.dumps({"jsonrpc": "2.0", **request}).encode() + b"\n")
        last = f'"id":{[INITIALIZATION, *requests][-1]["id"]}'.encode()
        await until(lambda: last in answers.read_bytes() or process.returncode is not None)
        yield process, answers


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_signal_ends_stdio_server_while_its_input_is_open(
    shared: Up, tmp_path: Path, number: signal.Signals
) -> None:
    async with run_stdio_server(shared, tmp_path) as (process, _):
        process.send_signal(number)
        async with asyncio.timeout(TIMEOUT):
            assert await process.wait() == -number


async def test_request_with_half_of_an_emoji_is_answered(shared: Up, tmp_path: Path) -> None:
    halved = {"name": "memory_search", "arguments": {"query": "tin trains \ud83d"}}
    call = {"id": 2, "method": "tools/call", "params": halved}
    async with run_stdio_server(shared, tmp_path, {"method": "notifications/initialized"}, call) as (
        process,
        answers,
    ):
        process.terminate()
        await process.wait()
    _, answer = map(json.loads, answers.read_text().splitlines())
    assert (answer["id"], answer["result"]["isError"]) == (2, False)


async def test_line_that_is_no_message_is_answered_with_an_error(shared: Up, tmp_path: Path) -> None:
    invalid = b"{not json\n\n[1]\n"
    async with run_stdio_server(shared, tmp_path, invalid=invalid) as (process, answers):
        process.terminate()
        await process.wait()
    *errors, initialized = map(json.loads, answers.read_text().splitlines())
    assert [(each["id"], each["error"]["code"]) for each in errors] == [(None, -32700), (None, -32600)]
    assert "result" in initialized


async def test_mcp_serves_over_stdio(shared: Up) -> None:
    from mcp import types
    from mcp.client.client import Client
    from mcp.client.stdio import StdioServerParameters

    arguments = ["-m", "mnemon", "mcp", "--tenant", "mcp", "--user", "anna", "--data", str(shared.data)]
    # The protocol of clients before 2026; other tests here use the current one.
    async with Client(StdioServerParameters(command=sys.executable, args=arguments), mode="legacy") as client:
        told = {tool.name: tool for tool in (await client.list_tools()).tools}
        printed = list_definitions("mcp")
        assert [told[tool["name"]].input_schema for tool in printed] == [
            tool["inputSchema"] for tool in printed
        ]
        assert set(told) - {tool["name"] for tool in printed} == {"memory_context", "new_conversation"}

        saved = await call(client, "memory_save", text="Prefers night trains to planes")
        assert saved["decision"] == "saved"
        async with overheard(shared, "ask.mcp.anna.search.v1") as asked:
            found = await call(client, "memory_search", query="train or plane?")
            assert [hit["id"] for hit in found["hits"]] == [saved["id"]]
            assert json.loads((await asked.next_msg(TIMEOUT)).data)["min_seq"] == saved["seen_seq"]
        context = await client.call_tool("memory_context", {"query": "How do I get to Porto?"})
        assert "Prefers night trains to planes" in text(context)
        (contents,) = (await client.read_resource("mnemon://context")).contents
        assert isinstance(contents, types.TextResourceContents)
        assert "Prefers night trains to planes" in contents.text
        (message,) = (await client.get_prompt("with_memory", {"message": "To Porto?"})).messages
        assert isinstance(message.content, types.TextContent)
        assert "night trains" in message.content.text
        assert message.content.text.endswith("To Porto?")

        refused = await call(client, "memory_save", text="My card is 4111 1111 1111 1111")
        assert (refused["decision"], refused["rule"]) == ("rejected", "secret")
        offered = await call(client, "memory_forget", query="trains to Porto")
        assert [each["id"] for each in offered["candidates"]] == [saved["id"]]
        assert "id" not in offered, "nothing is removed"
        assert (await call(client, "memory_forget", query="night trains"))["id"] == saved["id"]
        assert (await call(client, "memory_read"))["facts"] == []
        for tool, given, problem in (
            (
                "memory_get",
                {"id": saved["id"]},
                (
                    f"not_found: there is no fact, message, document or summary '{saved['id']}'; "
                    "find the id with `search`."
                ),
            ),
            ("memory_save", {}, "bad_request: text: Field required"),
            ("memory_search", {"query": "tea", "limit": 1000}, "bad_request: limit: "),
        ):
            result = await client.call_tool(tool, given)
            assert result.is_error
            assert text(result).startswith(problem)


@pytest.mark.long
async def test_mcp_serves_over_http(shared: Up) -> None:
    assert shared.endpoints
    async with talk("mcp", "--tenant", "mcp", "--http", "0", "--data", shared.data) as command:
        url = re.search(r"http://\S+", await command.heard("answers at"))
        token = re.search(r"Bearer (\S+)", await command.heard("Authorization"))
        assert url
        assert token
        async with httpx2.AsyncClient(timeout=TIMEOUT) as stranger:
            assert (await stranger.post(url[0], json={})).status_code == 401
            bearer = {"Authorization": f"Bearer {token[1]}", "Accept": "text/event-stream"}
            # `stream`, because an accepted request would open a stream that does not end.
            async with stranger.stream("GET", url[0], headers=bearer) as refused:
                assert (refused.status_code, refused.headers["Allow"]) == (405, "POST")
        async with (
            _over_http(url[0], token[1], quote("Борис")) as boris,
            _over_http(url[0], token[1], "vera") as vera,
        ):
            saved = await call(boris, "memory_save", text="Plays the cello in a quartet")
            assert (await call(vera, "memory_read"))["facts"] == []
            (hit,) = (await call(boris, "memory_search", query="cello"))["hits"]
            assert hit["id"] == saved["id"]
            async with MemoryClient.connect(shared.endpoints.nats, tenant="mcp", timeouts=PATIENT) as memory:
                assert len((await memory.read("Борис", min_seq=saved["seen_seq"])).facts) == 1
            async with MemoryClient.connect(shared.endpoints.nats, tenant="mcp", timeouts=PATIENT) as memory:
                await memory.publish("Борис", "user", "The cello is at the repairer's")
                begun = await call(boris, "new_conversation")
                assert (await memory.history("Борис", min_seq=begun["seen_seq"])).messages == ()
            assert "repairer" not in text(await boris.call_tool("memory_context", {"query": "cello"}))
            assert (await boris.call_tool("new_conversation", {"keep": True})).is_error
            assert len((await call(boris, "memory_read"))["facts"]) == 1, "facts stay"
            await call(boris, "memory_forget", id=saved["id"])
            assert (await call(boris, "memory_search", query="cello"))["hits"] == []
        async with _over_http(url[0], token[1], "") as nobody:
            assert "send the header Mnemon-User" in text(await nobody.call_tool("memory_read", {}))


@pytest.mark.long
async def test_server_of_one_user_permits_no_other(shared: Up) -> None:
    async with talk(
        "mcp", "--tenant", "mcp", "--user", "Борис", "--http", "0", "--data", shared.data
    ) as command:
        url = re.search(r"http://\S+", await command.heard("answers at"))
        token = re.search(r"Bearer (\S+)", await command.heard("Authorization"))
        assert url
        assert token
        async with _over_http(url[0], token[1], "vera") as vera:
            refused = await vera.call_tool("memory_read", {})
            assert refused.is_error
            assert text(refused).startswith("forbidden: the server is for the user 'Борис'")
        for user in ("", quote("Борис")):
            async with _over_http(url[0], token[1], user) as boris:
                assert not (await boris.call_tool("memory_read", {})).is_error


async def test_mcp_names_missing_requirements(tmp_path: Path) -> None:
    refusal = await mnemon("mcp", "--tenant", "mcp", "--data", tmp_path)
    assert (refusal.code, refusal.out) == (2, "")
    assert "--user NAME" in refusal.err


@asynccontextmanager
async def _over_http(url: str, token: str, user: str) -> AsyncIterator["Client"]:
    from mcp.client.client import Client
    from mcp.client.streamable_http import streamable_http_client

    headers = {"Authorization": f"Bearer {token}", "Mnemon-User": user}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=TIMEOUT) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client
