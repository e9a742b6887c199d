"""The client as a bot uses it, with servers that answer and with servers that fail."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import uvloop
from nats.aio.client import Client
from nats.aio.msg import Msg

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.events.chat import ToolCall
from mnemon_contracts.identity import derive_first_conversation
from mnemon_contracts.subjects import InvalidId
from mnemon_contracts.verbs.ask import HistoryReplyV1
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.config import Deployment
from mnemon_infra.embedded.nats_server import NatsServer
from mnemon_infra.process.data_folder import replace_file
from mnemon_producers.client import MemoryClient
from mnemon_producers.errors import AskFailed, NotConnected, PublishFailed
from mnemon_producers.timeouts import Timeouts
from tests.support.patience import PATIENT

IMPATIENT = Timeouts(publish=0.5, retry=0.5, ask=0.5)


@pytest_asyncio.fixture
async def memory(mnemon: Deployment) -> AsyncIterator[MemoryClient]:
    """A client of tenant `acme`, connected to a running mnemon."""
    async with MemoryClient.connect(str(mnemon.nats_url), tenant="acme", timeouts=PATIENT) as memory:
        yield memory


async def test_client_publishes_and_reads_context(memory: MemoryClient) -> None:
    await memory.publish("u42", "user", "My sister's name is Vera.")
    await memory.publish("u42", "assistant", "Noted.")
    said = await memory.publish("u42", "user", "What is it?")
    context = await memory.context("u42", query="What is it?", min_seq=said)
    assert [message.role for message in context.messages] == ["user", "assistant", "user"]
    assert "Vera" in context.messages[0].content
    assert context.degraded == ("relevant", "conversation"), "there are no vectors here to search"
    assert context.seen_seq >= said


async def test_every_field_of_a_message_is_kept(memory: MemoryClient) -> None:
    sent_at = datetime(2026, 11, 21, 10, tzinfo=UTC)
    said = await memory.publish("u1", "tool", "42", sent_at=sent_at, name="search", task_id="t1", id="x")
    [message] = (await memory.history("u1", min_seq=said)).messages
    assert (message.role, message.content, message.name) == ("tool", "42", "search")
    assert (message.sent_at, message.task_id, message.id, message.seq) == (sent_at, "t1", "x", said)


async def test_tool_calls_are_typed(memory: MemoryClient) -> None:
    calls = [ToolCall(name="search", arguments={"q": "x"})]
    said = await memory.publish("u1", "assistant", "done", tool_calls=calls, metadata={"draft": None})
    contents = [message.content for message in (await memory.history("u1", min_seq=said)).messages]
    assert contents == ["done", "Tools used: search"]


async def test_conversations_are_started_cleared_and_read_by_name(memory: MemoryClient) -> None:
    await memory.publish("u1", "user", "first of all")
    await memory.start("u1", "holidays")
    await memory.publish("u1", "user", "to the sea")
    await memory.publish("u1", "user", "at work", conversation="office")
    cleared = await memory.clear("u1", "office")
    assert await _contents(memory, min_seq=cleared) == []
    assert await _contents(memory, conversation="holidays", min_seq=cleared) == ["to the sea"]
    assert await _contents(memory, conversation="office", min_seq=cleared) == []
    first = derive_first_conversation("acme", "u1")
    assert await _contents(memory, conversation=first, min_seq=cleared) == ["first of all"]


async def test_start_can_discard_former_messages(memory: MemoryClient) -> None:
    await memory.publish("u1", "user", "forget me")
    started = await memory.start("u1", discard_previous=True)
    status = await memory.status("u1", min_seq=started)
    assert status.messages == 0


async def test_the_profile_is_set_field_by_field(memory: MemoryClient) -> None:
    assert (await memory.set_profile("u1", {"name": "Vera", "city": "Perm"})).profile == {
        "name": "Vera",
        "city": "Perm",
    }
    kept = await memory.set_profile("u1", {"city": None})
    assert (await memory.profile("u1", min_seq=kept.seen_seq)).profile == {"name": "Vera"}


async def test_a_verb_is_asked_by_name(memory: MemoryClient) -> None:
    said = await memory.publish("u1", "user", "a")
    reply = await memory.ask("u1", "history", limit=1, min_seq=said)
    assert isinstance(reply, HistoryReplyV1)
    assert [message.content for message in reply.messages] == ["a"]


@pytest.mark.parametrize(
    ("verb", "fields", "field"), [("remember", {}, "verb"), ("history", {"limt": 3}, "limt")]
)
async def test_invalid_request_is_named(
    connection: Client, verb: str, fields: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidBody) as refused:
        await MemoryClient(connection, tenant="acme").ask("u1", verb, **fields)
    assert refused.value.field == field


async def test_text_in_place_of_a_list_is_refused_and_not_taken_letter_by_letter(
    connection: Client,
) -> None:
    memory = MemoryClient(connection, tenant="acme")
    with pytest.raises(InvalidBody, match="preceding: "):
        await memory.search("u1", "and when was that?", preceding="Anna moved")
    context = await memory.context("u1", query="and when was that?", preceding="Anna moved")
    assert context.error is not None
    assert (context.error.code, context.error.field) == ("bad_request", "preceding")


async def test_value_of_another_type_is_named(connection: Client) -> None:
    memory = MemoryClient(connection, tenant="acme")
    wrong: Any = ["a", "b"]
    text: Any = "search"
    nothing: Any = None
    with pytest.raises(InvalidBody, match=r"^metadata: "):
        await memory.publish("u1", "user", "hi", metadata=wrong)
    with pytest.raises(InvalidBody, match=r"^tool_calls: "):
        await memory.publish("u1", "assistant", "hi", tool_calls=text)
    for fields in (wrong, nothing):
        with pytest.raises(InvalidBody, match=r"^fields: "):
            await memory.set_profile("u1", fields)


@pytest.mark.parametrize("seq", [0, None])
async def test_outcome_needs_the_position_of_an_event(connection: Client, seq: Any) -> None:
    with pytest.raises(InvalidBody, match=r"^seq: "):
        await MemoryClient(connection, tenant="acme").outcome("u1", seq)


async def test_a_wrong_tenant_is_named(connection: Client) -> None:
    with pytest.raises(InvalidId, match="tenant: "):
        MemoryClient(connection, tenant="")


async def _silence(_: Msg) -> None:
    """Receive a request and send no reply."""


def _answer(body: bytes) -> Callable[[Msg], Awaitable[None]]:
    async def answer(request: Msg) -> None:
        await request.respond(body)

    return answer


ERROR = {"code": "refused", "message": "not you", "retryable": False}

FAILURES = [
    pytest.param(None, "unavailable", id="nobody answers"),
    pytest.param(_silence, "timeout", id="silence"),
    pytest.param(_answer(b"rubbish"), "internal", id="not JSON"),
    pytest.param(_answer(b"{}"), "internal", id="not a reply"),
    pytest.param(_answer(b'{"seen_seq": 1, "messages": 3}'), "internal", id="a wrong field"),
    pytest.param(_answer(json.dumps({"seen_seq": 1, "error": ERROR}).encode()), "refused", id="an error"),
]


@pytest.mark.parametrize(("responder", "code"), FAILURES)
async def test_a_memory_that_fails_gives_an_empty_context(
    connection: Client, responder: Callable[[Msg], Awaitable[None]] | None, code: str
) -> None:
    if responder:
        await connection.subscribe("ask.>", cb=responder)
    memory = MemoryClient(connection, tenant="acme", timeouts=IMPATIENT)
    async with asyncio.timeout(60):
        context = await memory.context("u1", query="hi")
    assert (context.messages, context.profile, context.degraded) == ((), {}, ("memory",))
    assert context.error is not None
    assert context.error.code == code


async def test_timeout_of_a_request_that_makes_another_change_is_not_retryable(connection: Client) -> None:
    await connection.subscribe("ask.>", cb=_silence)
    memory = MemoryClient(connection, tenant="acme", timeouts=Timeouts(ask=0.5, save=0.5))
    calls = [
        memory.add_task("u1", "Buy tea"),
        memory.add_document("u1", "Tea"),
        memory.forget("u1", query="tea"),
        memory.update("u1", query="tea", text="Likes green tea"),
        memory.add_task("u1", "Buy tea", task_id="t1"),
        memory.forget("u1", id="pf_001"),
    ]
    failures = await asyncio.gather(*calls, return_exceptions=True)
    assert all(isinstance(failed, AskFailed) and failed.code == "timeout" for failed in failures)
    assert [failed.retryable for failed in failures if isinstance(failed, AskFailed)] == [
        *([False] * 4),
        *([True] * 2),
    ]
    assert str(failures[0]) == (
        "timeout: no reply to tasks within 0.5 s, but the change may take effect; read the memory before you "
        "repeat the request, which may make another change"
    )


async def test_history_pages_back(memory: MemoryClient) -> None:
    for number in range(5):
        said = await memory.publish("u1", "user", str(number))
    newest = await memory.history("u1", limit=2, min_seq=said)
    older = await memory.history("u1", limit=2, before=newest.messages[0].seq)
    assert [message.content for message in (*older.messages, *newest.messages)] == ["1", "2", "3", "4"]


async def test_a_retrieve_that_ignores_the_position_of_a_page_is_too_old(connection: Client) -> None:
    message = {"role": "user", "content": "new", "seq": 9, "id": "m", "sent_at": "2026-11-21T10:00:00Z"}
    newest = {"seen_seq": 9, "conversation": "c", "messages": [message]}
    await connection.subscribe("ask.>", cb=_answer(json.dumps(newest).encode()))
    memory = MemoryClient(connection, tenant="acme", timeouts=IMPATIENT)
    with pytest.raises(AskFailed, match="too old for `before`") as failed:
        await memory.history("u1", before=9)
    assert failed.value.code == "not_implemented"
    assert len((await memory.history("u1", before=10)).messages) == 1


@pytest.mark.parametrize(("responder", "code"), FAILURES)
async def test_failed_request_for_history_raises(
    connection: Client, responder: Callable[[Msg], Awaitable[None]] | None, code: str
) -> None:
    if responder:
        await connection.subscribe("ask.>", cb=responder)
    with pytest.raises(AskFailed) as failed:
        await MemoryClient(connection, tenant="acme", timeouts=IMPATIENT).history("u1")
    assert failed.value.code == code
    assert failed.value.retryable is (code != "refused")


@pytest.mark.parametrize(
    ("user", "query"), [("u1", "\ud800"), ("u1", "a\0b"), ("u1", "x" * 2_000_000), ("", "hi")]
)
async def test_invalid_request_for_a_context_gives_an_empty_context(
    connection: Client, user: str, query: str
) -> None:
    context = await MemoryClient(connection, tenant="acme").context(user, query=query)
    assert context.degraded == ("memory",)
    assert context.error is not None
    assert context.error.code == "bad_request"


async def test_invalid_request_for_a_context_names_the_field(connection: Client) -> None:
    context = await MemoryClient(connection, tenant="acme").context("u1", budget=0)
    assert context.error is not None
    assert (context.error.code, context.error.field) == ("bad_request", "budget")


async def test_request_in_flight_ends_before_the_client_closes(connection: Client, nats_url: str) -> None:
    requests: asyncio.Queue[Msg] = asyncio.Queue()
    await connection.subscribe("ask.>", cb=requests.put)
    async with AsyncExitStack() as stack:
        opened = MemoryClient.connect(nats_url, tenant="acme", timeouts=PATIENT)
        memory = await stack.enter_async_context(opened)
        asking = asyncio.create_task(memory.status("u1"))
        request = await requests.get()
        closing = asyncio.create_task(stack.aclose())
        for _ in range(3):  # the client begins to close, in two tasks
            await asyncio.sleep(0)
        with pytest.raises(AskFailed, match="the client was closed") as failed:
            await memory.history("u1")
        assert (failed.value.code, failed.value.retryable) == ("unavailable", False)
        await request.respond(b'{"seen_seq": 1}')
        assert (await asking).seen_seq == 1
        await closing
    context = await memory.context("u1")
    assert context.error is not None
    assert (context.error.code, context.error.retryable) == ("unavailable", False)
    with pytest.raises(PublishFailed, match="the client was closed"):
        await memory.publish("u1", "user", "hi")


async def test_request_on_a_connection_that_was_closed_is_not_repeated(
    connection: Client, nats_url: str
) -> None:
    requests: asyncio.Queue[Msg] = asyncio.Queue()
    await connection.subscribe("ask.>", cb=requests.put)
    own = await connect(nats_url, name="own")
    asking = asyncio.create_task(MemoryClient(own, tenant="acme", timeouts=IMPATIENT).status("u1"))
    await requests.get()
    await own.close()
    with pytest.raises(AskFailed, match="the connection was closed") as failed:
        await asking
    assert (failed.value.code, failed.value.retryable) == ("unavailable", False)


async def test_a_server_that_is_gone_gives_an_empty_context(tmp_path: Path) -> None:
    server = NatsServer(tmp_path, None)
    await server.start()
    async with MemoryClient.connect(server.url, tenant="acme", timeouts=IMPATIENT) as memory:
        await server.stop()
        async with asyncio.timeout(60):
            context = await memory.context("u1", query="hi")
        assert context.degraded == ("memory",)


def test_client_in_uvloop_closes_after_its_server_has_ended(tmp_path: Path) -> None:
    async def scenario() -> None:
        server = NatsServer(tmp_path, None)
        await server.start()
        async with MemoryClient.connect(server.url, tenant="acme", timeouts=IMPATIENT) as memory:
            await server.stop()
            assert (await memory.context("u1", query="hi")).degraded == ("memory",)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(scenario())


class Remarks(logging.Handler):
    """A logging handler that queues the level and the text of each log message."""

    def __init__(self) -> None:
        super().__init__()
        self.said: asyncio.Queue[tuple[int, str]] = asyncio.Queue()

    def emit(self, record: logging.LogRecord) -> None:
        self.said.put_nowait((record.levelno, record.getMessage()))


@pytest.mark.long
async def test_a_lasting_outage_of_the_server_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG, "mnemon.client")
    remarks = Remarks()
    monkeypatch.setattr(logging.getLogger("mnemon.client"), "handlers", [remarks])
    server = NatsServer(tmp_path, None)
    await server.start()
    async with MemoryClient.connect(server.url, tenant="acme", timeouts=IMPATIENT), asyncio.timeout(60):
        await server.stop()
        heard: list[tuple[int, str]] = []
        while sum(level == logging.DEBUG for level, _ in heard) < 3:
            heard.append(await remarks.said.get())
        await server.start()
        while (logging.INFO, "reconnected to NATS") not in heard:
            heard.append(await remarks.said.get())
    await server.stop()
    warnings = [remark for level, remark in heard if level == logging.WARNING]
    assert warnings
    assert len(warnings) == len(set(warnings))


async def test_without_a_server_there_is_no_client() -> None:
    with pytest.raises(NotConnected, match=r"127\.0\.0\.1:1"):
        async with MemoryClient.connect("nats://127.0.0.1:1", tenant="acme"):
            pass


@pytest.mark.parametrize("url", ["", " , "])
async def test_without_an_address_there_is_no_client(url: str) -> None:
    with pytest.raises(NotConnected, match=r"no address .*Give one, such as nats://"):
        async with MemoryClient.connect(url, tenant="acme"):
            pass


async def test_address_that_is_not_a_string_is_named() -> None:
    unset: Any = None
    with pytest.raises(NotConnected, match=r"^url: must be a string, not NoneType\. Give one"):
        async with MemoryClient.connect(unset, tenant="acme"):
            pass


@pytest.mark.parametrize("url", ["nats://127.0.0.1:99999", "nats://127.0.0.1:x", "nats://"])
async def test_address_that_no_server_can_have_is_named(url: str) -> None:
    with pytest.raises(NotConnected, match=f"at {url}: "):
        async with MemoryClient.connect(url, tenant="acme"):
            pass


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("bot:s3cret@127.0.0.1:1", r"\*\*\*@127\.0\.0\.1:1"),
        ("nats://bot:s3/cret@127.0.0.1:1", r"nats://\*\*\*@127\.0\.0\.1:1"),
        ("nats://127.0.0.1:1,bot:s3@cret@127.0.0.1:2", r"nats://\*\*\*@127\.0\.0\.1:2"),
    ],
)
async def test_no_password_is_in_the_error(url: str, shown: str) -> None:
    with pytest.raises(NotConnected, match=f"at {shown}: "):
        async with MemoryClient.connect(url, tenant="acme"):
            pass


async def test_one_server_of_several_is_enough(nats_url: str) -> None:
    async with MemoryClient.connect(
        f"nats://127.0.0.1:1, {nats_url}", tenant="acme", timeouts=IMPATIENT
    ) as memory:
        assert (await memory.context("u1")).degraded == ("memory",)


class GuardedNatsServer(NatsServer):
    """A server with an administrator, and with a bot that may use tenant `Acme` and its own inboxes only."""

    async def prepare(self) -> None:
        await super().prepare()
        configuration = Path(self.mark).read_text().replace("no_auth_user: anybody", "")
        users = """
            { user: admin, password: secret },
            { user: bot, password: secret, permissions: {
              publish: ["chat.Acme.>", "ask.Acme.>"], subscribe: "_INBOX_bot.>" } }
        """
        replace_file(Path(self.mark), configuration.replace('{"user": "anybody"}', users))


@pytest_asyncio.fixture
async def guarded_server(tmp_path: Path) -> AsyncIterator[GuardedNatsServer]:
    """A provisioned server with permissions."""
    server = GuardedNatsServer(tmp_path, None)
    await server.start()
    admin = await connect(server.url.replace("//", "//admin:secret@"), name="admin")
    await provision(admin)
    yield server
    await admin.close()
    await server.stop()


@pytest.fixture
def guarded(guarded_server: GuardedNatsServer) -> dict[str, Any]:
    """Arguments with which the bot connects to the server with permissions."""
    return {"url": guarded_server.url, "user": "bot", "password": "secret", "timeouts": IMPATIENT}


async def test_bot_with_permissions_publishes_and_asks(guarded: dict[str, Any]) -> None:
    patient = {**guarded, "timeouts": PATIENT}
    async with MemoryClient.connect(**patient, tenant="Acme", inbox_prefix="_INBOX_bot") as memory:
        assert await memory.publish("u1", "user", "a") == 1
        with pytest.raises(AskFailed, match=r"no process answers history; .* that `retrieve` runs$"):
            await memory.history("u1")
        with pytest.raises(AskFailed, match="too old for version 2 of search"):
            await memory.search("u1", "tea", preceding=["Which tea?"])


async def test_denied_permission_is_named(guarded: dict[str, Any]) -> None:
    async with MemoryClient.connect(**guarded, tenant="Globex", inbox_prefix="_INBOX_bot") as memory:
        with pytest.raises(PublishFailed, match="permissions violation for publish") as failed:
            await memory.publish("u1", "user", "a")
        assert not failed.value.retryable
        with pytest.raises(AskFailed, match="permissions violation for publish") as refused:
            await memory.history("u1")
        assert (refused.value.code, refused.value.retryable) == ("refused", False)


@pytest.mark.long
async def test_denial_that_was_lifted_is_no_reason_of_a_later_failure(
    guarded: dict[str, Any], guarded_server: GuardedNatsServer
) -> None:
    async with MemoryClient.connect(**guarded, tenant="Globex", inbox_prefix="_INBOX_bot") as memory:
        with pytest.raises(PublishFailed, match="permissions violation"):
            await memory.publish("u1", "user", "a")
        configuration = Path(guarded_server.mark)
        replace_file(configuration, configuration.read_text().replace("Acme", "Globex"))
        assert await guarded_server.reload()
        assert await memory.publish("u1", "user", "a") == 1
        [process] = guarded_server.find_own_process(guarded_server.pid_path)
        process.suspend()
        try:
            with pytest.raises(PublishFailed, match="did not answer") as failed:
                await memory.publish("u1", "user", "b")
            with pytest.raises(AskFailed, match="no reply") as unanswered:
                await memory.history("u1")
        finally:
            process.resume()
        assert failed.value.retryable
        assert unanswered.value.code == "timeout"


async def test_inbox_without_permission_is_named(guarded: dict[str, Any]) -> None:
    async with MemoryClient.connect(**guarded, tenant="Acme") as memory:
        with pytest.raises(PublishFailed, match="inbox_prefix"):
            await memory.publish("u1", "user", "a")


async def test_wrong_credentials_are_named(guarded: dict[str, Any]) -> None:
    with pytest.raises(NotConnected, match=r"Authorization|credentials"):
        async with MemoryClient.connect(**{**guarded, "password": "guess"}, tenant="Acme"):
            pass


async def _contents(memory: MemoryClient, **request: Any) -> list[str]:
    return [message.content for message in (await memory.history("u1", **request)).messages]
