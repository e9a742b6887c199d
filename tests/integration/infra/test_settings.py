"""Settings reach every process, also after an outage of its server; no change is lost."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.js.client import JetStreamContext
from nats.js.kv import KeyValue
from structlog.testing import capture_logs

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.settings.document import DEFAULTS, Document, set_value, unset_value
from mnemon_contracts.settings.groups import FactLimits, SettingsV1
from mnemon_contracts.streams import SETTINGS
from mnemon_contracts.subjects import InvalidId
from mnemon_infra.broker.broker import Broker
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.config import Deployment
from mnemon_infra.embedded.nats_server import NatsServer
from mnemon_infra.settings import store
from mnemon_infra.settings.bucket import SettingsNotProvisioned
from mnemon_infra.settings.history import read_history, roll_back_settings
from mnemon_infra.settings.store import LiveSettings, change_settings, read_settings, write_settings
from tests.support.settings_edit import Edit, setting

TIMEOUT = 60.0


async def until(holds: Callable[[], bool]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(TIMEOUT):
        while not holds():
            await asyncio.sleep(0.005)


@asynccontextmanager
async def watching(url: str) -> AsyncIterator[LiveSettings]:
    """Open live settings on a separate connection, as in another process."""
    connection = await connect(url, name="another")
    live = LiveSettings()
    async with live.watch_bucket(connection):
        yield live
    await connection.close()


@pytest_asyncio.fixture
async def live(nats_url: str, connection: Client) -> AsyncIterator[LiveSettings]:
    async with watching(nats_url) as live:
        yield live


@pytest_asyncio.fixture
async def bucket(connection: Client) -> KeyValue:
    """The bucket itself, for entries that mnemon would not write."""
    return await connection.jetstream().key_value(SETTINGS)


async def test_without_a_bucket_the_error_says_what_to_do(nats_url: str) -> None:
    connection = await connect(nats_url, name="test")
    for act in (
        read_settings(connection),
        change_settings(connection, setting()),
        read_history(connection),
        roll_back_settings(connection, 1),
    ):
        with pytest.raises(SettingsNotProvisioned, match="mnemon provision"):
            await act
    with pytest.raises(SettingsNotProvisioned, match="mnemon provision"):
        async with LiveSettings().watch_bucket(connection):
            pass
    await connection.close()


async def test_setting_reaches_every_process(nats_url: str, connection: Client) -> None:
    async with AsyncExitStack() as ends:
        everywhere = [await ends.enter_async_context(watching(nats_url)) for _ in range(3)]
        assert [each.value for each in everywhere] == [SettingsV1()] * 3
        for messages in range(20, 25):
            await change_settings(connection, setting(recent_messages=messages))
            await until(lambda: {each.value.recent_messages for each in everywhere} == {messages})  # noqa: B023


async def test_new_process_reads_current_settings(nats_url: str, connection: Client) -> None:
    await write_settings(connection, SettingsV1(recent_messages=3))
    await change_settings(connection, setting(recent_messages=4), "acme")
    async with watching(nats_url) as live:
        assert (live.value.recent_messages, live.get_settings("acme").recent_messages) == (3, 4)


async def test_tenant_overrides_only_differing_settings(live: LiveSettings, connection: Client) -> None:
    await change_settings(connection, setting(limits__per_user=60, wait_for_log_ms=7), "acme")
    await until(lambda: live.get_settings("acme").limits.per_user == 60)
    assert live.get_settings("globex") is live.value
    assert live.value == SettingsV1()

    await change_settings(connection, setting(recent_messages=33, wait_for_log_ms=8))
    await until(lambda: live.value.recent_messages == 33)
    assert live.get_settings("acme").recent_messages == 33
    assert live.get_settings("acme").wait_for_log_ms == 7
    assert live.get_settings("globex").wait_for_log_ms == 8
    assert await read_settings(connection, "acme") == live.get_settings("acme")

    await change_settings(connection, lambda document: unset_value(document, "limits"), "acme")
    await until(lambda: live.get_settings("acme").limits == FactLimits())
    assert live.get_settings("acme").wait_for_log_ms == 7


async def test_null_of_tenant_overrides_the_default(live: LiveSettings, connection: Client) -> None:
    await change_settings(connection, setting(retrieval__threshold=0.4))
    await change_settings(connection, setting(retrieval__threshold=None), "acme")
    await until(lambda: live.value.retrieval.threshold == 0.4 and live.get_settings("acme") is not live.value)
    assert live.get_settings("acme").retrieval.threshold is None


@pytest.mark.parametrize("tenant", ["-", "a.b", "акме 1", "100%", "default"])
async def test_any_tenant_can_have_its_own_settings(
    live: LiveSettings, connection: Client, tenant: str
) -> None:
    revision = await change_settings(connection, setting(recent_messages=3), tenant)
    assert revision is not None
    await change_settings(connection, setting(recent_messages=4), tenant)
    await until(lambda: live.get_settings(tenant).recent_messages == 4)
    await roll_back_settings(connection, revision, tenant)
    assert (await read_settings(connection, tenant)).recent_messages == 3
    assert len(await read_history(connection, tenant)) == 3
    assert live.value == SettingsV1()


async def test_invalid_tenant_is_refused(connection: Client) -> None:
    with pytest.raises(InvalidId):
        await change_settings(connection, setting(recent_messages=3), "")


async def test_override_in_conflict_with_default_is_ignored(live: LiveSettings, connection: Client) -> None:
    await change_settings(connection, setting(limits__per_user=60, recent_messages=3), "acme")
    await until(lambda: live.get_settings("acme").limits.per_user == 60)
    await change_settings(connection, setting(limits__profile=100))
    await until(lambda: live.value.limits.profile == 100)
    assert live.get_settings("acme") is live.value
    assert await read_settings(connection, "acme") == live.value

    await change_settings(connection, setting(limits__profile=10), "acme")  # resolves the conflict
    await until(lambda: live.get_settings("acme").limits.profile == 10)
    assert live.get_settings("acme").recent_messages == 3
    await change_settings(connection, lambda document: unset_value(document, "limits.profile"))
    await until(lambda: live.value == SettingsV1())
    assert live.get_settings("acme").limits == FactLimits(per_user=60, profile=10)


async def test_invalid_change_is_refused(connection: Client) -> None:
    await write_settings(connection, SettingsV1(recent_messages=3))
    refusals = [
        (setting(recent_messages=0), None, "recent_messages"),
        (setting(limits__per_user=True), "acme", "limits.per_user"),
        (setting(policy__min_length=300), "acme", "policy.max_length"),
        (setting(embedding__provider="none"), "acme", "embedding"),
        (setting(colour="red"), None, "colour"),
    ]
    for edit, tenant, field in refusals:
        with pytest.raises(InvalidBody) as refused:
            await change_settings(connection, edit, tenant)
        assert refused.value.field == field
    assert len(await read_history(connection)) == 1
    assert await read_history(connection, "acme") == []


async def test_concurrent_changes_lose_nothing(nats_url: str, connection: Client) -> None:
    numbers = [name for name, value in DEFAULTS.items() if name.startswith("context.sections.")]
    second = await connect(nats_url, name="second")
    calls = 0

    def edit(name: str) -> Edit:
        def with_one_more(document: Document) -> Document:
            nonlocal calls
            calls += 1
            return set_value(document, name, 77)

        return with_one_more

    for tenant in (None, "acme"):
        revisions = await asyncio.gather(
            *(
                change_settings(who, edit(name), tenant)
                for name, who in zip(numbers, [connection, second] * len(numbers), strict=False)
            )
        )
        assert len(set(revisions)) == len(numbers)
        assert set((await read_settings(connection, tenant)).context.sections.model_dump().values()) == {77}
    assert calls > 2 * len(numbers)  # some changes conflicted and were repeated
    await second.close()


@pytest.mark.parametrize("rubbish", [b'{"recent_messages": "many"}', b"many", b"[]", b'{"policy": 5}'])
async def test_foreign_keys_are_ignored(
    nats_url: str, connection: Client, live: LiveSettings, bucket: KeyValue, rubbish: bytes
) -> None:
    await write_settings(connection, SettingsV1(recent_messages=3))
    await until(lambda: live.value.recent_messages == 3)
    await bucket.put("default", rubbish)
    await bucket.put("tenant.acme", rubbish)
    await bucket.put("tenant.a.b", b"{}")
    await bucket.put("something", b"else")
    await change_settings(connection, setting(recent_messages=4), "last")
    await until(lambda: live.get_settings("last").recent_messages == 4)
    assert live.value == live.get_settings("acme") == SettingsV1(recent_messages=3)
    assert await read_settings(connection) == await read_settings(connection, "acme") == live.value
    async with watching(nats_url) as later:
        assert later.value == later.get_settings("acme") == live.value

    assert [revision.problem is None for revision in await read_history(connection)] == [True, False]
    await change_settings(connection, setting(wait_for_log_ms=9))
    await until(lambda: live.value == SettingsV1(recent_messages=3, wait_for_log_ms=9))


async def test_only_entries_that_take_effect_are_logged_as_changes(
    connection: Client, live: LiveSettings, bucket: KeyValue
) -> None:
    with capture_logs() as lines:
        for key in ("default", "tenant.acme", "tenant.a.b", "residence.acme", "something"):
            await bucket.put(key, b"many")
        await change_settings(connection, setting(recent_messages=4), "last")
        await until(lambda: live.get_settings("last").recent_messages == 4)
        await bucket.delete("tenant.acme")
        await change_settings(connection, setting(recent_messages=5))
        await until(lambda: live.value.recent_messages == 5)
    changed = [line["key"] for line in lines if line["event"] == "settings changed"]
    assert changed == ["tenant.last", "tenant.acme", "default"]


async def test_deleted_setting_returns_to_the_default(
    connection: Client, live: LiveSettings, bucket: KeyValue
) -> None:
    await change_settings(connection, setting(recent_messages=3))
    await change_settings(connection, setting(recent_messages=4), "acme")
    await until(lambda: live.get_settings("acme").recent_messages == 4)
    await bucket.delete("tenant.acme")
    await until(lambda: live.get_settings("acme").recent_messages == 3)
    await bucket.delete("default")
    await until(lambda: live.value == SettingsV1())
    assert [revision.deleted for revision in await read_history(connection)] == [False, True]
    await change_settings(connection, setting(wait_for_log_ms=5), "acme")
    await until(lambda: live.get_settings("acme") == SettingsV1(wait_for_log_ms=5))


async def test_settings_are_current_after_a_server_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JetStreamContext._JSI, "activity_check", lambda _: asyncio.Event().wait())
    server = NatsServer(tmp_path, None)
    await server.start()
    admin = await connect(server.url, name="admin")
    await provision(admin)
    gaps = asyncio.Event()
    live = LiveSettings()
    broker = Broker(Deployment(nats_url=server.url), "test", on_gap=gaps.set)
    async with broker.connect() as connection, live.watch_bucket(connection):
        for messages in (5, 6):
            gaps.clear()
            server = await killed_and_started(server, tmp_path)
            await until(lambda: admin.is_connected)
            await change_settings(admin, setting(recent_messages=messages))
            await change_settings(admin, setting(recent_messages=messages + 10), "acme")
            # The check of nats-py, which restores a watch after twenty seconds, does not run.
            await until(lambda: live.get_settings("acme").recent_messages == messages + 10)  # noqa: B023
            assert live.value.recent_messages == messages
            assert gaps.is_set()

            # The renewed watch delivers later changes at once.
            await change_settings(admin, setting(recent_messages=messages + 20))
            await until(lambda: live.value.recent_messages == messages + 20)  # noqa: B023
    await admin.close()
    await server.stop()


async def killed_and_started(server: NatsServer, data: Path) -> NatsServer:
    """Kill the server, and return a new one with the same folder and address."""
    assert server._process is not None
    server._process.kill()
    await server.wait_for_end()
    again = NatsServer(data, int(server.url.rpartition(":")[2]))
    await again.start()
    return again


async def test_a_bucket_lost_and_created_again_is_followed(
    monkeypatch: pytest.MonkeyPatch, nats_url: str, connection: Client
) -> None:
    monkeypatch.setattr(store, "CHECK_INTERVAL", 0.05)
    monkeypatch.setattr(store, "PAUSE", 0.05)
    await change_settings(connection, setting(recent_messages=5))
    await change_settings(connection, setting(recent_messages=6), tenant="acme")
    async with watching(nats_url) as live:
        with capture_logs() as lines:
            await connection.jetstream().delete_key_value(SETTINGS)
            await until(lambda: any("former settings stay" in line["event"] for line in lines))
            assert (live.value.recent_messages, live.get_settings("acme").recent_messages) == (5, 6)
            await provision(connection)
            await until(lambda: live.value == live.get_settings("acme") == SettingsV1())
        (said,) = [line["error"] for line in lines if line["log_level"] == "error"]
        assert "`mnemon provision`" in said
        await change_settings(connection, setting(recent_messages=7))
        await until(lambda: live.value.recent_messages == 7)


async def test_a_bucket_that_is_replaced_between_two_checks_is_followed(
    monkeypatch: pytest.MonkeyPatch, nats_url: str, connection: Client
) -> None:
    monkeypatch.setattr(store, "CHECK_INTERVAL", 0.5)
    async with watching(nats_url) as live:
        await connection.jetstream().delete_key_value(SETTINGS)
        await provision(connection)
        await change_settings(connection, setting(recent_messages=7))
        await until(lambda: live.value.recent_messages == 7)
