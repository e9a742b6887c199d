"""The drop-in proxy: official clients of OpenAI and Anthropic, gateway processes and a local model."""

import asyncio
import json
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import httpx
import nats
import openai
import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.aio.subscription import Subscription

from mnemon import MemoryClient
from mnemon_contracts.verbs.ask import StoredMessage
from mnemon_infra.settings.api_keys import issue_key
from tests.support.patience import PATIENT
from tests.support.processes.command_server import ForkedCommand
from tests.support.processes.programs import install_packages, require_node, run_program
from tests.support.processes.stack import TIMEOUT, Up, mnemon, start_mnemon, until
from tests.support.repository.code_blocks import Block, blocks
from tests.support.repository.command_lines import invocations, parse
from tests.support.servers.chat_model import ChatModel
from tests.support.stock_client import persisted

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

NODE = Path(__file__).parent / "node"
PAGE = Path(__file__).parents[3] / "docs" / "proxy.md"
PATIENT_PROXY = {"MNEMON_PROXY_MEMORY_SECONDS": "30"}
"""The proxy waits up to 30 s for memory, since test machines are slow and no test here measures speed."""

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}


@dataclass
class RunningGateway:
    """A running `mnemon gateway`: its address and its process."""

    url: str
    process: asyncio.subprocess.Process | ForkedCommand


@asynccontextmanager
async def run_gateway(data: Path, model: ChatModel, **environment: str) -> AsyncIterator[RunningGateway]:
    """Run `mnemon gateway` in a process of its own for the duration of the block."""
    providers = {
        "MNEMON_MODEL_URL": f"{model.url}/v1",
        "MNEMON_MODEL_API_KEY": "sk-configured",
        "MNEMON_ANTHROPIC_URL": model.url,
        "ANTHROPIC_API_KEY": "sk-ant-configured",
    }
    with tempfile.NamedTemporaryFile() as output:
        process = await start_mnemon(
            "gateway",
            "--data",
            data,
            "--port",
            "0",
            environment={**providers, **PATIENT_PROXY, **environment},
            output=output.file,
            errors=output.file,
        )
        shown = Path(output.name)
        try:
            await until(lambda: "Press Ctrl-C" in shown.read_text() or process.returncode is not None)
            found = re.search(r"^gateway +(\S+)$", shown.read_text(), re.MULTILINE)
            assert found, shown.read_text()
            yield RunningGateway(found[1], process)
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()


@dataclass
class Bot:
    """A bot with a new tenant: its key, its clients, and a subscription to the messages of the tenant."""

    tenant: str
    key: str
    connection: Client
    memory: MemoryClient
    published: Subscription
    gateway: RunningGateway
    model: ChatModel

    def openai(self, gateway: RunningGateway | None = None, **options: Any) -> openai.AsyncOpenAI:
        """Return the official client, with the gateway's address and the tenant's key."""
        return openai.AsyncOpenAI(
            base_url=f"{(gateway or self.gateway).url}/openai/v1",
            **{"api_key": self.key, "max_retries": 0, "timeout": TIMEOUT, **options},
        )

    def anthropic(self) -> "AsyncAnthropic":
        from anthropic import AsyncAnthropic

        return AsyncAnthropic(
            base_url=f"{self.gateway.url}/anthropic", api_key=self.key, max_retries=0, timeout=TIMEOUT
        )

    async def next_published(self) -> dict[str, Any]:
        """Return the next message; each test waits for those that it expects before it reads the history."""
        message: dict[str, Any] = json.loads((await self.published.next_msg(timeout=TIMEOUT)).data)
        return message

    async def stored(self, user: str = "anna", conversation: str | None = None) -> list[StoredMessage]:
        """Return the messages of a user, without the system messages that name the tools of an answer."""
        seen = await self.memory.publish(user, "user", "(end)", conversation=conversation)
        reply = await self.memory.history(user, min_seq=seen, conversation=conversation)
        return [each for each in reply.messages if each.content != "(end)" and each.role != "system"]


@asynccontextmanager
async def serve_bot(up: Up, gateway: RunningGateway, model: ChatModel) -> AsyncIterator[Bot]:
    assert up.endpoints
    tenant = f"proxy-{uuid4().hex[:8]}"
    issued = await up.issue_key(tenant)
    connection = await nats.connect(up.endpoints.nats)
    try:
        published = await connection.subscribe(f"chat.{tenant}.>")
        await connection.flush()
        memory = MemoryClient(connection, tenant=tenant, timeouts=PATIENT)
        yield Bot(tenant, issued.text, connection, memory, published, gateway, model)
    finally:
        await connection.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(shared: Up) -> AsyncIterator[tuple[RunningGateway, ChatModel]]:
    async with ChatModel().serve() as model, run_gateway(shared.data, model) as gateway:
        yield gateway, model


@pytest_asyncio.fixture(loop_scope="module")
async def bot(shared: Up, gateway: tuple[RunningGateway, ChatModel]) -> AsyncIterator[Bot]:
    """Yield a bot with a new tenant, after a reset of the model."""
    running, model = gateway
    first = ChatModel()
    for name in ("parts", "tool_calls", "refusal", "pause", "is_cut", "received", "left"):
        setattr(model, name, getattr(first, name))
    async with serve_bot(shared, running, model) as bot:
        yield bot


pytestmark = pytest.mark.asyncio(loop_scope="module")


def user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


async def complete(client: openai.AsyncOpenAI, *messages: Any, **options: Any) -> str:
    """Return the text of a streamed answer."""
    stream = await client.chat.completions.create(
        model="a-model", messages=messages, stream=True, **{"user": "anna", **options}
    )
    return "".join([each.choices[0].delta.content or "" async for each in stream if each.choices])


async def test_second_process_remembers_what_the_first_was_told(shared: Up, bot: Bot) -> None:
    async with run_gateway(shared.data, bot.model) as other:
        async with bot.openai() as client:
            assert await complete(client, user("I live in Porto")) == "A cello."
        assert [(await bot.next_published())["role"] for _ in range(2)] == ["user", "assistant"]
        seen = await bot.memory.publish("anna", "user", "Nothing else")
        await persisted(bot.connection, seen)
        async with bot.openai(other) as client:
            answer = await client.chat.completions.create(
                model="a-model",
                messages=[{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Where?"}],
                user="anna",
            )
            assert answer.choices[0].message.content == "A cello."
    told = bot.model.received[-1].messages
    assert told[0] == {"role": "system", "content": "Be brief."}
    assert "I live in Porto" in told[-1]["content"]
    assert told[-1]["content"].endswith("\n\nWhere?")
    assert bot.model.received[-1].headers["authorization"] == "Bearer sk-configured"


async def test_same_history_sent_ten_times_stores_each_message_once(shared: Up, bot: Bot) -> None:
    history = [user("hi"), {"role": "assistant", "content": "Hello!"}, user("yes"), user("yes")]
    async with run_gateway(shared.data, bot.model) as other, bot.openai() as one, bot.openai(other) as two:
        for _ in range(5):
            for client in (one, two):
                await complete(client, *history, extra_headers={"Mnemon-Conversation": "c1"})
        await complete(one, *history, {"role": "assistant", "content": "A cello."}, user("Which?"),
                       extra_headers={"Mnemon-Conversation": "c1"})  # fmt: skip
        await until_published(bot, "Which?")
        assert (await bot.next_published())["content"] == "A cello."
    stored = await bot.stored(conversation="c1")
    assert [each.content for each in stored] == [
        "hi", "Hello!", "yes", "yes", "A cello.", "Which?", "A cello."
    ]  # fmt: skip


async def until_published(bot: Bot, content: str) -> None:
    while (await bot.next_published())["content"] != content:
        pass


async def test_shortened_history_stores_nothing_twice(shared: Up, bot: Bot) -> None:
    history: list[dict[str, str]] = []
    async with bot.openai() as one:
        for number in range(4):
            history.append(user(f"Question {number}"))
            answer = await complete(one, *history[-3:])
            history.append({"role": "assistant", "content": answer})
            await until_published(bot, f"Question {number}")
            assert (await bot.next_published())["content"] == "A cello."
        seen = await bot.memory.publish("anna", "user", "(end)")
        await persisted(bot.connection, seen)
    async with run_gateway(shared.data, bot.model) as other, bot.openai(other) as two:
        await complete(two, *history[-3:], user("Last"))
        await until_published(bot, "Last")
        assert (await bot.next_published())["content"] == "A cello."
    stored = await bot.stored()
    assert [each.content for each in stored] == [*(each["content"] for each in history), "Last", "A cello."]


async def test_streamed_bytes_are_unchanged(bot: Bot) -> None:
    async with httpx.AsyncClient(timeout=TIMEOUT) as client:
        response = await client.post(
            f"{bot.gateway.url}/openai/v1/chat/completions",
            headers={"Authorization": f"Bearer {bot.key}", "Mnemon-User": "%D0%90%D0%BD%D0%BD%D0%B0"},
            json={"model": "a-model", "messages": [user("Hi")], "stream": True},
        )
    assert response.content == bot.model.sent
    assert response.headers["content-type"].startswith("text/event-stream")
    assert [(await bot.next_published())["role"] for _ in range(2)] == ["user", "assistant"]
    assert [each.content for each in await bot.stored("Анна")] == ["Hi", "A cello."]


async def test_tools_and_images_pass_and_are_stored(bot: Bot) -> None:
    bot.model.parts = ()
    bot.model.tool_calls = (("t1", "find", '{"what": "cello"}'),)
    function = {"name": "find", "parameters": {"type": "object"}, "strict": True}
    tool: Any = {"type": "function", "function": function}
    asked: Any = {"role": "user", "content": [{"type": "text", "text": "What is this?"}, IMAGE]}
    async with bot.openai() as client:
        stream = client.chat.completions.stream(
            model="a-model",
            messages=[asked],
            tools=[tool],
            user="anna",
            stream_options={"include_usage": True},
        )
        async with stream as events:
            answer = (await events.get_final_completion()).choices[0].message
        assert answer.tool_calls
        bot.model.parts, bot.model.tool_calls = ("A cello.",), ()
        called: Any = answer.model_dump(exclude_none=True, include={"role", "content", "tool_calls"})
        for call in called["tool_calls"]:
            call["function"] = {key: call["function"][key] for key in ("name", "arguments")}
        result: Any = {"role": "tool", "tool_call_id": "t1", "content": "Four strings."}
        await complete(client, asked, called, result)
    assert bot.model.received[0].body["tools"] == [tool]
    assert bot.model.received[0].messages == [asked]
    messages = [await bot.next_published() for _ in range(4)]
    assert [each["role"] for each in messages] == ["user", "assistant", "tool", "assistant"]
    assert messages[0]["metadata"] == {"attachments": 1}
    assert messages[1]["tool_calls"] == [{"name": "find", "id": "t1", "arguments": {"what": "cello"}}]
    assert messages[1]["metadata"]["tokens"] == {"input": 1200, "cached": 1024, "output": 7}
    assert (messages[2]["task_id"], messages[2]["content"]) == ("t1", "Four strings.")
    assert [each.role for each in await bot.stored()] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]


@pytest.mark.long
async def test_usage_has_the_tokens_of_chats(shared: Up, bot: Bot) -> None:
    async with bot.openai() as client:
        await client.chat.completions.create(model="a-model", messages=[user("Hi")], user="anna")  # type: ignore[list-item]
        await complete(client, user("Hi"), stream_options={"include_usage": True})
    async with bot.anthropic() as other:
        asked: Any = {
            "messages": [user("Hi")],
            "model": "a-model",
            "max_tokens": 9,
            "metadata": {"user_id": "anna"},
        }
        await other.messages.create(**asked)
        async with other.messages.stream(**asked) as stream:
            await stream.get_final_message()
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(TIMEOUT):
        while sum(each["calls"] for each in found) < 4:
            shown = await mnemon(
                *("usage", "--tenant", bot.tenant, "--by", "purpose,model", "--json", "--data", shared.data)
            )
            assert shown.code == 0, shown.err
            # The stack also extracts facts, from idle conversations.
            found = [each for each in json.loads(shown.out)["usage"] if each["purpose"] == "chat"]
    assert [
        (each["purpose"], each["model"], each["calls"], each["input"], each["cached"], each["output"])
        for each in found
    ] == [
        ("chat", "anthropic/claude-2026", 2, 2 * 1200, 2 * 1024, 2 * 7),
        ("chat", "openai/a-model-2026", 2, 2 * 1200, 2 * 1024, 2 * 7),
    ]


async def test_cancelled_stream_ends_the_request_and_stores_no_answer(bot: Bot) -> None:
    bot.model.pause, bot.model.parts = asyncio.Event(), ("A ", "cello", ".")
    async with bot.openai() as client:
        stream = await client.chat.completions.create(
            model="a-model", messages=[{"role": "user", "content": "Hi"}], user="anna", stream=True
        )
        first = await anext(aiter(stream))
        assert first.choices[0].delta.content == "A "
        await stream.close()
        async with asyncio.timeout(TIMEOUT):
            await bot.model.left.wait()
        bot.model.pause = None
        await complete(client, user("Hi"), {"role": "assistant", "content": "A "}, user("And?"))
        await until_published(bot, "And?")
        assert (await bot.next_published())["content"] == "A cello."
    stored = await bot.stored()
    assert [each.content for each in stored] == ["Hi", "A ", "And?", "A cello."]


@pytest.mark.parametrize(
    ("status", "error"), [(429, openai.RateLimitError), (500, openai.InternalServerError)]
)
async def test_errors_of_the_provider_pass_unchanged(
    bot: Bot, status: int, error: type[openai.APIStatusError]
) -> None:
    body = {"error": {"message": "no", "type": "rate_limit_exceeded", "param": None, "code": "x"}}
    bot.model.refusal = status, body
    async with bot.openai() as client:
        with pytest.raises(error) as raised:
            await complete(client, user("Hi"))
    assert raised.value.response.status_code == status
    assert raised.value.response.json() == body
    assert raised.value.response.headers["x-request-id"] == "r-1"
    assert (await bot.next_published())["content"] == "Hi"
    assert [each.role for each in await bot.stored()] == ["user"]


async def test_stream_that_the_provider_cuts_off_is_cut_off(bot: Bot) -> None:
    bot.model.is_cut = True
    async with bot.openai() as client:
        with pytest.raises(httpx.RemoteProtocolError):
            await complete(client, user("Hi"))
    assert (await bot.next_published())["content"] == "Hi"
    assert [each.content for each in await bot.stored()] == ["Hi"]


@pytest.mark.long
async def test_impatient_client_gets_its_own_timeout(bot: Bot) -> None:
    bot.model.pause, bot.model.parts = asyncio.Event(), ("A",)
    async with bot.openai(timeout=5.0) as client:
        with pytest.raises((openai.APITimeoutError, httpx.ReadTimeout)):
            await complete(client, user("Hi"))
    async with asyncio.timeout(TIMEOUT):
        await bot.model.left.wait()


async def test_provider_that_is_away_is_a_bad_gateway(shared: Up) -> None:
    away = ChatModel(url="http://127.0.0.1:1")
    async with (
        run_gateway(shared.data, away) as gateway,
        serve_bot(shared, gateway, away) as bot,
        bot.openai() as client,
    ):
        with pytest.raises(openai.InternalServerError) as raised:
            await complete(client, user("Hi"))
        assert raised.value.response.status_code == 502
        assert raised.value.response.json()["retryable"] is True


async def test_slow_memory_leaves_the_request_as_it_is(shared: Up, bot: Bot) -> None:
    await bot.memory.publish("anna", "user", "I live in Porto")
    sent = {"model": "a-model", "messages": [user("Where do I live?")], "user": "anna"}
    async with (
        run_gateway(shared.data, bot.model, MNEMON_PROXY_MEMORY_SECONDS="0.0001") as gateway,
        httpx.AsyncClient(timeout=TIMEOUT) as client,
    ):
        headers = {"Authorization": "Bearer sk-own", "Mnemon-Key": bot.key}
        response = await client.post(f"{gateway.url}/openai/v1/chat/completions", headers=headers, json=sent)
    assert response.status_code == 200
    assert bot.model.received[-1].body == sent
    assert bot.model.received[-1].headers["authorization"] == "Bearer sk-own"


async def test_requests_need_a_key_and_a_user(bot: Bot) -> None:
    async with bot.openai() as client:
        with pytest.raises(openai.UnprocessableEntityError, match="Mnemon-User"):
            await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "Hi"}])
        assert [each.id async for each in client.models.list()] == ["a-model"]
    async with bot.openai(api_key="sk-wrong") as client:
        with pytest.raises(openai.AuthenticationError):
            await complete(client, user("Hi"))
    assert [each.path for each in bot.model.received] == ["/v1/models"]


@pytest.mark.parametrize("path", ["../files", "%2e%2e/files", "..%2Ffiles"])
async def test_other_paths_of_the_provider_are_out_of_reach(bot: Bot, path: str) -> None:
    address = httpx.URL(bot.gateway.url)
    assert address.port
    reader, writer = await asyncio.open_connection(address.host, address.port)
    writer.write(
        f"GET /openai/v1/models/{path} HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer {bot.key}\r\n"
        "Connection: close\r\n\r\n".encode()
    )
    assert (await reader.readline()).startswith(b"HTTP/1.1 404")
    writer.close()
    assert bot.model.received == []


ODD_MESSAGES: list[Any] = [
    [{"role": "user", "content": [{"text": "without a type"}]}],
    [{"role": "user", "content": "x", "tool_calls": [{"function": {"name": "x"}}]}],
    [{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "x", "arguments": {"a": 1}}}]}],
    [{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "x", "arguments": None}}]}],
    [{"role": "assistant", "content": None, "refusal": 5}],
    [{"role": "system", "content": {"text": "x"}}, {"role": "user", "content": "x"}],
]


@pytest.mark.parametrize("messages", ODD_MESSAGES)
async def test_odd_messages_pass_and_need_the_same_permission(
    shared: Up, bot: Bot, messages: list[Any]
) -> None:
    reading = (await shared.issue_key("odd", ["read"])).text
    body = {"model": "m", "user": "anna", "messages": messages}
    async with httpx.AsyncClient(base_url=f"{bot.gateway.url}/openai/v1", timeout=TIMEOUT) as client:
        answers = {
            key: await client.post("/chat/completions", json=body, headers={"Authorization": f"Bearer {key}"})
            for key in (bot.key, reading)
        }
        listed = await client.get("/models", headers={"Authorization": f"Bearer {reading}"})
    assert answers[bot.key].status_code < 500, answers[bot.key].text
    assert (answers[reading].status_code, listed.status_code) == (403, 403)


async def test_invalid_request_reaches_the_provider_as_it_is(bot: Bot) -> None:
    bot.model.refusal = 400, {"error": {"message": "messages is missing"}}
    options: Any = {"params": {"beta": "true"}}
    async with bot.openai() as client:
        with pytest.raises(openai.BadRequestError, match="messages is missing"):
            await client.post(
                "/chat/completions", body={"model": "m"}, options=options, cast_to=httpx.Response
            )
    assert bot.model.received[-1].body == {"model": "m"}


@pytest.mark.long
async def test_anthropic_client_has_memory(bot: Bot) -> None:
    from anthropic import AuthenticationError

    seen = await bot.memory.publish("anna", "user", "I live in Porto", conversation="c1")
    await persisted(bot.connection, seen)
    options: Any = {
        "model": "claude",
        "max_tokens": 100,
        "metadata": {"user_id": "anna"},
        "extra_headers": {"Mnemon-Conversation": "c1"},
    }
    bot.model.tool_calls = (("t1", "find", '{"what": "cello"}'),)
    asked: Any = {"role": "user", "content": "Where?"}
    async with bot.anthropic() as client:
        async with client.messages.stream(system="Be brief.", messages=[asked], **options) as stream:
            answer = await stream.get_final_message()
        assert [block.type for block in answer.content] == ["text", "tool_use"]
        bot.model.tool_calls = ()
        blocks = [each.model_dump(exclude_none=True) for each in answer.content]
        called: Any = {"role": "assistant", "content": blocks}
        result: Any = {"type": "tool_result", "tool_use_id": "t1", "content": "Four strings."}
        await client.messages.create(
            messages=[asked, called, {"role": "user", "content": [result]}], **options
        )
        with pytest.raises(AuthenticationError):
            await client.with_options(api_key="wrong").messages.create(messages=[asked], **options)
    first = bot.model.received[0]
    assert first.headers["x-api-key"] == "sk-ant-configured"
    assert first.body["system"] == "Be brief."
    assert "I live in Porto" in first.messages[-1]["content"]
    await until_published(bot, "Four strings.")
    assert (await bot.next_published())["content"] == "A cello."
    stored = await bot.stored(conversation="c1")
    assert [(each.role, each.content) for each in stored] == [
        ("user", "I live in Porto"),
        ("user", "Where?"),
        ("assistant", "A cello."),
        ("tool", "Four strings."),
        ("assistant", "A cello."),
    ]


@pytest.mark.long
async def test_killed_gateway_loses_and_doubles_no_message(shared: Up, bot: Bot) -> None:
    history: list[Any] = [user("Question 0"), {"role": "assistant", "content": "Answer 0"}]
    bot.model.parts = ("A ", "cello", ".")
    for number in range(1, 4):
        history.append(user(f"Question {number}"))
        bot.model.pause = asyncio.Event()
        async with run_gateway(shared.data, bot.model) as killed, bot.openai(killed) as client:
            stream = await client.chat.completions.create(
                model="a-model",
                messages=history,
                user="anna",
                stream=True,
            )
            parts = aiter(stream)
            await anext(parts)
            await until_published(bot, f"Question {number}")
            killed.process.kill()
            await killed.process.wait()
            with pytest.raises(httpx.RemoteProtocolError):
                [_ async for _ in parts]
        bot.model.pause.set()
        bot.model.pause = None
        async with run_gateway(shared.data, bot.model) as other, bot.openai(other) as client:
            history.append({"role": "assistant", "content": await complete(client, *history)})
    await until_published(bot, "A cello.")
    stored = await bot.stored()
    assert [each.content for each in stored] == [each["content"] for each in history]


@pytest.mark.long
async def test_proxy_answers_while_memory_is_unreachable(stack: Up) -> None:
    patience = {"MNEMON_PROXY_MEMORY_SECONDS": "1"}
    async with (
        ChatModel().serve() as model,
        run_gateway(stack.data, model, **patience) as gateway,
        serve_bot(stack, gateway, model) as bot,
        bot.openai() as client,
    ):
        await complete(client, user("Hi"))
        await until_published(bot, "A cello.")
        await stack.stop()
        async with asyncio.timeout(20):
            assert await complete(client, user("And?")) == "A cello."
        assert model.received[-1].messages == [user("And?")]
        unchecked = issue_key(bot.tenant).text
        other: Any = {"api_key": "sk-own", "default_headers": {"Mnemon-Key": unchecked}}
        async with bot.openai(**other) as own:
            assert await complete(own, user("Hi")) == "A cello."
        assert model.received[-1].headers["authorization"] == "Bearer sk-own"
        async with bot.openai(api_key=unchecked) as unknown:
            with pytest.raises(openai.InternalServerError, match="cannot be checked"):
                await complete(unknown, user("Hi"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def npm_client() -> AsyncIterator[Path]:
    """Yield a folder with a program that uses the official npm client."""
    require_node()
    with tempfile.TemporaryDirectory(prefix="mnemon-test-") as parent:
        folder = Path(shutil.copytree(NODE / "openai", Path(parent) / "node"))
        await install_packages(folder)
        yield folder


async def complete_with_npm(
    folder: Path, bot: Bot, *messages: dict[str, str], gateway: RunningGateway | None = None, times: int = 1
) -> list[str]:
    """Run the program with the npm client, and return the answers that it prints."""
    done = await run_program(
        *("node", "proxy_client.mjs", f"{(gateway or bot.gateway).url}/openai/v1", bot.key),
        *(json.dumps(messages), str(times)),
        folder=folder,
    )
    assert done.code == 0, done.err
    return done.out.splitlines()


@pytest.mark.long
async def test_npm_client_has_memory_over_two_processes(shared: Up, bot: Bot, npm_client: Path) -> None:
    async with run_gateway(shared.data, bot.model) as other:
        for question, gateway in (("I live in Porto", bot.gateway), ("Where do I live?", other)):
            assert await complete_with_npm(npm_client, bot, user(question), gateway=gateway) == ["A cello."]
            await until_published(bot, question)
            assert (await bot.next_published())["content"] == "A cello."
            seen = await bot.memory.publish("anna", "user", "Nothing else")
            await persisted(bot.connection, seen)
    assert "I live in Porto" in bot.model.received[-1].messages[-1]["content"]


@pytest.mark.long
async def test_same_history_of_the_npm_client_stores_each_message_once(
    shared: Up, bot: Bot, npm_client: Path
) -> None:
    history = [user("hi"), {"role": "assistant", "content": "Hello!"}, user("yes"), user("yes")]
    async with run_gateway(shared.data, bot.model) as other:
        for gateway in (bot.gateway, other):
            answers = await complete_with_npm(npm_client, bot, *history, gateway=gateway, times=5)
            assert answers == ["A cello."] * 5
        last = [*history, {"role": "assistant", "content": "A cello."}, user("Which?")]
        await complete_with_npm(npm_client, bot, *last)
        await until_published(bot, "Which?")
        assert (await bot.next_published())["content"] == "A cello."
    assert [each.content for each in await bot.stored()] == [
        "hi", "Hello!", "yes", "yes", "A cello.", "Which?", "A cello."
    ]  # fmt: skip


async def test_another_tenants_key_gets_no_memory(shared: Up, bot: Bot) -> None:
    seen = await bot.memory.publish("anna", "user", "My PIN is in the drawer.")
    await persisted(bot.connection, seen)
    async with serve_bot(shared, bot.gateway, bot.model) as other:
        async with other.openai() as client:
            await complete(client, user("Where is my PIN?"))
        async with other.anthropic() as client:
            await client.messages.create(
                model="claude",
                max_tokens=9,
                messages=[{"role": "user", "content": "Where is my PIN?"}],
                metadata={"user_id": "anna"},
            )
        assert len(bot.model.received) == 2
        assert "drawer" not in str([each.body for each in bot.model.received])
        await until_published(other, "Where is my PIN?")
    assert [each.content for each in await bot.stored()] == ["My PIN is in the drawer."]


@pytest.mark.long
@pytest.mark.parametrize(
    "block", [each for each in blocks(PAGE) if each.language == "python"], ids=["openai", "anthropic"]
)
async def test_examples_of_the_page_run(bot: Bot, tmp_path: Path, block: Block) -> None:
    done = await run_program(
        sys.executable,
        "-c",
        block.text,
        folder=tmp_path,
        MNEMON_PROXY=bot.gateway.url,
        MNEMON_KEY=bot.key,
    )
    assert (done.code, done.out) == (0, "A cello.\n"), done.err
    assert (await bot.next_published())["content"] == "Where do I live?"


async def test_commands_of_the_page_exist() -> None:
    (text,) = [each.text for each in blocks(PAGE) if each.language == "text"]
    commands = [each for line in text.splitlines() for each in invocations(line)]
    assert [each[0] for each in commands] == ["gateway", "auth"]
    for arguments in commands:
        parse(arguments)
