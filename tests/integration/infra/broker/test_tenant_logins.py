"""Permissions of logins, tested with a client of nats-py: each subject of another tenant is refused."""

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import nats
import nats.errors
import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.aio.msg import Msg

from mnemon.gateway.proxy.answers import Answer
from mnemon.gateway.proxy.usage import UsageRecorder
from mnemon_consumers.app import run_consumers
from mnemon_contracts.events.chat import MessageV1
from mnemon_contracts.events.memory import Tokens
from mnemon_contracts.streams import DEAD, LOG, WORK
from mnemon_contracts.subjects import build_inbox_prefix
from mnemon_infra.broker.connection import BrokerUnreachable, connect
from mnemon_infra.broker.provisioning.authorization import Login
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.config import Deployment
from mnemon_infra.database.migration import migrate_schema
from mnemon_infra.embedded.logins import FolderLogins, edit_authorization
from mnemon_infra.embedded.nats_server import NatsServer
from mnemon_infra.settings.store import read_settings
from mnemon_producers.client import MemoryClient
from mnemon_producers.errors import AskFailed, NotConnected, PublishFailed
from mnemon_producers.events import ChatEvent
from mnemon_producers.timeouts import Timeouts
from tests.support.patience import PATIENT
from tests.support.processes.stack import mnemon
from tests.support.servers.qdrant import locate_vectors

IMPATIENT = Timeouts(publish=1, retry=1, ask=1)
SAID = b'{"role": "user", "content": "hi"}'

PUBLISHED = [
    *("chat.B.u.-.message.v1", "ask.B.u.history.v1", "chat.A%2Eb.u.-.message.v1", "changed.A.u"),
    *("memory.A.u.fact.saved.v1", "memory.B.u.fact.saved.v1", "dead.persist.chat.A.u.-.message.v1"),
    *("work.compact.A.u.c", "work.extract.1", "schedule.idle.A.u", "$SRV.PING", "$SYS.REQ.SERVER.PING"),
    *("$KV.settings.default", "$KV.settings.tenant.A", "_INBOX_B.guess", "_INBOX.guess", "_R_.guess"),
    *("$JS.ACK.LOG.persist.1.1.1.1.0", "$JS.API.INFO", "$JS.API.STREAM.NAMES"),
    *(f"$JS.API.STREAM.{what}.LOG" for what in ("INFO", "CREATE", "UPDATE", "PURGE", "DELETE")),
    *("$JS.API.STREAM.MSG.GET.LOG", "$JS.API.STREAM.MSG.DELETE.LOG", "$JS.API.DIRECT.GET.LOG"),
    "$JS.API.DIRECT.GET.LOG.chat.A.u.-.message.v1",
    "$JS.API.DIRECT.GET.LOG.chat.B.u.-.message.v1",
    "$JS.API.DIRECT.GET.KV_settings.$KV.settings.default",
    *(f"$JS.API.CONSUMER.{what}.LOG" for what in ("CREATE", "LIST", "NAMES")),
    *(f"$JS.API.CONSUMER.{what}.LOG.persist" for what in ("DELETE", "MSG.NEXT", "DURABLE.CREATE", "INFO")),
    "$JS.API.CONSUMER.CREATE.LOG.mine.chat.A.>",
]

LISTENED = [
    *("chat.B.>", "chat.A.>", "chat.>", "memory.>", "memory.A.>", "ask.>", "ask.A.>", "ask.B.>", "changed.>"),
    *("work.>", "schedule.>", "dead.>", ">", "*", "_INBOX.>", "_INBOX_B.>", "*.>", "_R_.>"),
    *("$JS.>", "$KV.>", "$SRV.>", "$SYS.>", "_INBOX_A"),
]

# Reply subjects at which an acknowledgement or a reply would do harm.
REPLIES = [
    "chat.B.u.-.cleared.v1",
    "memory.B.u.fact.forgotten.v1",
    "work.compact.B.u.c",
    "schedule.idle.B.u",
    "dead.persist.chat.B.u.-.message.v1",
    "$JS.API.STREAM.PURGE.LOG",
    "$JS.API.CONSUMER.CREATE.LOG",
    "$KV.settings.default",
    "_INBOX_B.guess",
]


@dataclass
class ObservedClient:
    """A client of nats-py, with the errors that the server has sent to it."""

    connection: Client
    refusals: list[str] = field(default_factory=list)

    async def refused(self, subject: str) -> bool:
        """Return whether the server reports a permissions violation for `subject` within 60 seconds."""
        await self.connection.flush()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(60):
                while not self._said(subject):  # nats-py calls the error callback later
                    await asyncio.sleep(0.01)
        return self._said(subject)

    def _said(self, subject: str) -> bool:
        return any(
            "permissions violation" in said and f'"{subject.lower()}"' in said for said in self.refusals
        )


@dataclass
class TenantServer:
    """A server with logins, of the tenants A and B."""

    server: NatsServer
    operator: Client
    logins: dict[str, Login]

    def address(self, tenant: str) -> str:
        return self.logins[tenant].add_to_url(self.server.url)

    async def stored(self) -> dict[str, dict[str, int]]:
        """Return the number of messages by subject in each stream."""
        stream_context = self.operator.jetstream()
        names = (LOG, WORK, DEAD, "KV_settings")
        infos = [await stream_context.stream_info(name, subjects_filter=">") for name in names]
        return {name: info.state.subjects or {} for name, info in zip(names, infos, strict=True)}


@pytest_asyncio.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[TenantServer]:
    with FolderLogins(tmp_path).edit() as users:
        logins = {tenant: users.issue_tenant_login(tenant) for tenant in ("A", "B", "ä.b c")}
    server = NatsServer(tmp_path, None)
    await server.start()
    operator = await connect(server.build_login_url("operator"), name="operator")
    await provision(operator)
    yield TenantServer(server, operator, logins)
    await operator.close()
    await server.stop()


@contextlib.asynccontextmanager
async def stock(guarded: TenantServer, tenant: str) -> AsyncIterator[ObservedClient]:
    refusals: list[str] = []

    async def note(error: Exception) -> None:
        refusals.append(str(error).lower())

    options: dict[str, Any] = {"inbox_prefix": build_inbox_prefix(tenant), "error_cb": note}
    async with await nats.connect(guarded.address(tenant), **options) as connection:
        yield ObservedClient(connection, refusals)


async def test_login_reaches_nothing_of_another_tenant(guarded: TenantServer) -> None:
    before = await guarded.stored()
    async with stock(guarded, "A") as bot:
        for subject in PUBLISHED:
            await bot.connection.publish(subject, SAID, reply=bot.connection.new_inbox())
            assert await bot.refused(subject), subject
    assert await guarded.stored() == before


async def test_login_subscribes_only_to_its_inbox(guarded: TenantServer) -> None:
    async with stock(guarded, "A") as bot:
        for subject in LISTENED:
            await bot.connection.subscribe(subject)
            assert await bot.refused(subject), subject
        for subject in ("ask.A.u.history.v1", "ask.*.*.history.v1"):
            await bot.connection.subscribe(subject, queue="mnemon")
            assert await bot.refused(subject), subject


async def test_reply_reaches_only_the_requester(guarded: TenantServer) -> None:
    worker = await connect(guarded.server.build_login_url("worker"), name="worker")

    async def answer(message: Msg) -> None:
        await worker.publish(message.reply, b"{}")

    await worker.subscribe("ask.*.*.history.v1", queue="mnemon", cb=answer)
    await worker.flush()
    async with stock(guarded, "A") as bot, stock(guarded, "B") as other:
        heard = await other.connection.subscribe("_INBOX_B.>")
        await other.connection.flush()
        for reply in REPLIES:
            await bot.connection.publish("chat.A.u.-.message.v1", SAID, reply=reply)
            await bot.connection.publish("ask.A.u.history.v1", b"{}", reply=reply)
        # The worker answers in order: its answer to this request comes after all others.
        await bot.connection.request("ask.A.u.history.v1", b"{}", timeout=60)
        await bot.connection.jetstream().publish("chat.A.u.-.message.v1", SAID)
        await other.connection.flush()
        assert heard.pending_msgs == 0
    stored = await guarded.stored()
    assert stored == {LOG: {"chat.A.u.-.message.v1": len(REPLIES) + 1}, WORK: {}, DEAD: {}, "KV_settings": {}}
    await worker.close()


@pytest.mark.parametrize("tenant", ["A", "ä.b c"])
async def test_bot_login_publishes_and_asks_for_its_tenant(guarded: TenantServer, tenant: str) -> None:
    async with MemoryClient.connect(guarded.address(tenant), tenant=tenant, timeouts=PATIENT) as memory:
        assert await memory.publish("u", "user", "hi") == 1
        many = [ChatEvent("u", MessageV1(role="user", content=str(number))) for number in range(1500)]
        assert (await memory.publish_many(many)).last_seq == 1501
        with pytest.raises(AskFailed, match="no process answers"):
            await memory.history("u")


async def test_client_names_a_permissions_violation(guarded: TenantServer) -> None:
    async with MemoryClient.connect(guarded.address("A"), tenant="B", timeouts=IMPATIENT) as memory:
        expected = "permissions violation.*; connect with the tenant of this login, or"
        with pytest.raises(PublishFailed, match=expected) as failed:
            await memory.publish("u", "user", "hi")
        assert not failed.value.retryable


@pytest.mark.long
async def test_provisioning_with_the_login_of_workers_names_the_missing_permission(tmp_path: Path) -> None:
    with FolderLogins(tmp_path).edit():
        pass
    server = NatsServer(tmp_path, None)
    await server.start()
    try:
        refused = await mnemon("provision", MNEMON_NATS_URL=server.build_login_url("worker"))
    finally:
        await server.stop()
    assert refused.code == 3
    assert 'may not do this (permissions violation for publish to "$js.api.stream.create.log")' in refused.err
    assert "`mnemon auth operator`" in refused.err


async def test_connection_without_login_is_refused(guarded: TenantServer) -> None:
    with pytest.raises(BrokerUnreachable, match="credentials"):
        await connect(guarded.server.url, name="nobody")
    wrong = guarded.logins["A"]._replace(password="guess-that-is-wrong").add_to_url(guarded.server.url)
    with pytest.raises(NotConnected) as refused:
        async with MemoryClient.connect(wrong, tenant="A"):
            pass
    assert "guess-that-is-wrong" not in str(refused.value)


FORBIDDEN_TO_WORKERS = (
    *("$JS.API.STREAM.DELETE.LOG", "$JS.API.STREAM.SNAPSHOT.LOG", "chat.A.u.-.message.v1"),
    *("$JS.API.STREAM.CREATE.COPY", "$JS.API.STREAM.CREATE.LOG", "$JS.API.STREAM.UPDATE.LOG"),
    *("$JS.API.STREAM.PURGE.LOG", "$JS.API.STREAM.PURGE.DEAD", "$JS.API.STREAM.UPDATE.WORK"),
    *("$JS.API.STREAM.MSG.DELETE.KV_settings", "$KV.settings.default", "$JS.API.META.LEADER.STEPDOWN"),
)


async def test_worker_login_runs_all_consumers(
    guarded: TenantServer, database_url: str, tmp_path: Path
) -> None:
    worker = guarded.server.build_login_url("worker")
    alone = Deployment(nats_url=worker, database_dsn=database_url, database_schema=f"test_{uuid4().hex[:12]}")
    deployment = locate_vectors(alone, tmp_path / "vectors")
    assert deployment.database_url is not None
    migrate_schema(deployment.database_url, deployment.database_schema)
    async with (
        run_consumers(("persist", "index", "dedupe", "retrieve", "maintain"), deployment),
        MemoryClient.connect(guarded.address("A"), tenant="A", timeouts=PATIENT) as memory,
    ):
        said = await memory.publish("u", "user", "the otter")
        assert (await memory.save("u", "Likes otters")).decision == "saved"
        await guarded.operator.jetstream().publish("chat.A.u.-.message.v1", b"{")
        assert (await memory.history("u", min_seq=said)).messages
        receipt = await memory.erase("u")
        assert receipt.pending == ()
        assert not (await memory.history("u")).messages


async def test_gateway_login_counts_chats_and_derives_nothing_else(guarded: TenantServer) -> None:
    refusals: list[str] = []

    async def note(error: Exception) -> None:
        refusals.append(str(error).lower())

    async with await nats.connect(guarded.server.build_login_url("gateway"), error_cb=note) as connection:
        answer = Answer(model="a-model", tokens=Tokens(input=5, output=2))
        await UsageRecorder(connection).record(("A", "u"), "openai", answer)
        stored = await guarded.operator.jetstream().get_last_msg(LOG, "memory.A.u.model.called.v2")
        assert json.loads(stored.data or b"")["purpose"] == "chat"
        assert (await read_settings(connection, "A")).spending.prices == ()
        assert not refusals
        gateway = ObservedClient(connection, refusals)
        for subject in ("memory.A.u.fact.saved.v1", "$KV.settings.default", "$JS.API.STREAM.PURGE.LOG"):
            await connection.publish(subject, SAID)
            assert await gateway.refused(subject)


def test_old_logins_file_limits_the_worker(tmp_path: Path) -> None:
    path = tmp_path / "auth" / "nats.conf"
    with FolderLogins(tmp_path).edit():
        pass
    wide = path.read_text().replace("$JS.API.STREAM.PURGE.WORK", "$JS.API.>")
    path.write_text(wide)
    with FolderLogins(tmp_path).edit():
        pass
    assert "$JS.API.>" not in path.read_text()


async def test_a_worker_deletes_no_stream_and_is_no_bot(guarded: TenantServer) -> None:
    refusals: list[str] = []

    async def note(error: Exception) -> None:
        refusals.append(str(error).lower())

    async with await nats.connect(guarded.server.build_login_url("worker"), error_cb=note) as connection:
        worker = ObservedClient(connection, refusals)
        for subject in FORBIDDEN_TO_WORKERS:
            await connection.publish(subject, SAID)
            assert await worker.refused(subject)


async def test_a_new_tenant_is_accepted_while_others_stay_connected(
    guarded: TenantServer, tmp_path: Path
) -> None:
    cuts = 0

    async def cut() -> None:
        nonlocal cuts
        cuts += 1

    said: list[int] = []
    enough = asyncio.Event()
    options: dict[str, Any] = {"disconnected_cb": cut}
    async with MemoryClient.connect(guarded.address("A"), tenant="A", **options) as memory:

        async def talk() -> None:
            while not enough.is_set():
                said.append(await memory.publish("u", "user", "hi"))

        talking = asyncio.create_task(talk())
        for tenant in ("new", "newer"):
            with FolderLogins(tmp_path).edit() as users:
                login = users.issue_tenant_login(tenant)
            assert await guarded.server.reload()
            before = len(said)
            async with MemoryClient.connect(login.add_to_url(guarded.server.url), tenant=tenant) as newcomer:
                await newcomer.publish("u", "user", "hi")
            while len(said) < before + 10:
                await asyncio.sleep(0.01)
        enough.set()
        await talking
        assert cuts == 0
    stored = await guarded.stored()
    assert stored[LOG]["chat.A.u.-.message.v1"] == len(said) == len(set(said))


async def test_revoked_login_is_disconnected(guarded: TenantServer, tmp_path: Path) -> None:
    with FolderLogins(tmp_path).edit() as users:
        assert users.revoke_tenant_login("A")
        assert not users.revoke_tenant_login("nobody")
    assert await guarded.server.reload()
    with pytest.raises(NotConnected):
        async with MemoryClient.connect(guarded.address("A"), tenant="A"):
            pass
    async with MemoryClient.connect(guarded.address("B"), tenant="B") as memory:
        await memory.publish("u", "user", "hi")


async def test_logins_file_holds_no_password(guarded: TenantServer, tmp_path: Path) -> None:
    path = FolderLogins(tmp_path).path
    text = path.read_text()
    assert path.stat().st_mode & 0o077 == 0
    assert not any(login.password in text for login in guarded.logins.values())
    json.loads(text.partition(": ")[2])


def test_changed_logins_file_keeps_its_permissions_and_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "mnemon.conf"
    with edit_authorization(path) as users:
        users.issue_role_login("operator")
    path.chmod(0o640)
    if os.geteuid() == 0:  # an account of its own, as packages of nats-server create
        os.chown(path, 65_534, 65_534)
    former = path.stat()
    with edit_authorization(path) as users:
        users.issue_tenant_login("acme")
    changed = path.stat()
    assert "acme" in path.read_text()
    assert (changed.st_mode, changed.st_uid, changed.st_gid) == (
        former.st_mode,
        former.st_uid,
        former.st_gid,
    )


async def test_events_stored_without_logins_stay_readable(tmp_path: Path) -> None:
    server = NatsServer(tmp_path, None, "a key")
    await server.start()
    anybody = await connect(server.url, name="anybody")
    await provision(anybody)
    await anybody.jetstream().publish("chat.A.u.-.message.v1", SAID)
    await anybody.close()
    await server.stop()
    with FolderLogins(tmp_path).edit():
        pass
    server = NatsServer(tmp_path, None, "a key")
    await server.start()
    operator = await connect(server.build_login_url("operator"), name="operator")
    assert (await operator.jetstream().stream_info(LOG)).state.messages == 1
    await operator.close()
    await server.stop()
