"""Windows of conversations: cut by one process at a time, in pages, and once a conversation is idle."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from nats.aio.client import Client
from nats.js.errors import NoStreamResponseError, NotFoundError

from mnemon_consumers.app import run_consumers
from mnemon_consumers.extract.periodic_scan import PeriodicScan
from mnemon_consumers.extract.windowing import UNSETTLED_DELAY, WindowCutter
from mnemon_contracts.streams import LOG, WORK
from mnemon_contracts.subjects import build_schedule_subject, build_trigger_subject
from mnemon_infra.broker.streams.log_reader import read_event_pages
from mnemon_infra.broker.streams.triggers import list_trigger_subjects
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.locks import hold_lock
from mnemon_infra.settings.store import LiveSettings, change_settings
from tests.support.settings_edit import setting
from tests.support.stock_client import Stock, handled

ANNA, BORIS, CLARA = ("acme", "anna"), ("acme", "boris"), ("globex", "clara")
Owner = tuple[str, str]


@dataclass
class Cutter:
    """A process that cuts windows, with the schedules and windows that it stores."""

    connection: Client
    stock: Stock
    deployment: Deployment
    database: Database
    cutting: WindowCutter

    async def say(self, owner: Owner, conversation: str, *ages: float) -> list[int]:
        """Publish messages with the given ages in seconds; return their log positions."""
        now = datetime.now(UTC)
        return [
            await self.stock.say(
                f"words {age}",
                f"{owner[0]}.{owner[1]}.{conversation}",
                sent_at=(now - timedelta(seconds=age)).isoformat(),
            )
            for age in ages
        ]

    async def project(self) -> None:
        async with run_consumers(("persist",), self.deployment):
            await handled(self.connection, "persist")
        await self.connection.jetstream().purge_stream(WORK)

    async def windows(self, *owners: Owner) -> dict[Owner, list[tuple[str, int, int]]]:
        """Return the windows of users: conversation, first and last position."""
        async with self.database.transaction() as connection:
            cursor = await connection.execute(
                "SELECT tenant, user_id, conversation, from_seq, to_seq FROM windows ORDER BY 1, 2, 3, 4"
            )
            rows = await cursor.fetchall()
        return {owner: [row[2:] for row in rows if row[:2] == owner] for owner in owners}

    async def looked_at(self, owner: Owner) -> datetime | None:
        """Return the scheduled time of the user's next check; None without a schedule."""
        try:
            schedule = await self.connection.jetstream().get_last_msg(
                WORK, build_schedule_subject("extract", *owner)
            )
        except NotFoundError:
            return None
        assert schedule.headers is not None
        assert schedule.headers["Nats-Schedule-Target"] == build_trigger_subject("extract", *owner)
        return datetime.fromisoformat(schedule.headers["Nats-Schedule"].removeprefix("@at "))

    async def set(self, tenant: str | None = None, **values: Any) -> None:
        edit = setting(**{f"extraction__{name}": value for name, value in values.items()})
        await change_settings(self.connection, edit, tenant)


@asynccontextmanager
async def cutter_of(stock: Stock, deployment: Deployment, **values: Any) -> AsyncIterator[Cutter]:
    settings = LiveSettings()
    edit = setting(**{f"extraction__{name}": value for name, value in values.items()})
    await change_settings(stock.connection, edit)
    async with Database(deployment) as database, settings.watch_bucket(stock.connection):
        cutting = WindowCutter(database, settings)
        yield Cutter(stock.connection, stock, deployment, database, cutting)


@pytest.fixture
async def cutter(stock: Stock, deployment: Deployment) -> AsyncIterator[Cutter]:
    async with cutter_of(stock, deployment, idle_seconds=600, window_messages=2, after_messages=3) as cutter:
        yield cutter


async def test_user_windowed_by_another_process_is_skipped(cutter: Cutter) -> None:
    for owner in (ANNA, BORIS, CLARA):
        await cutter.say(owner, "home", 2000, 1000)
    await cutter.project()
    async with hold_lock(cutter.database, *ANNA, "extract"):
        assert await cutter.cutting.cut_messages(cutter.connection, [ANNA, BORIS, CLARA]) == {ANNA}
        cut = await cutter.windows(ANNA, BORIS, CLARA)
        assert [len(cut[owner]) for owner in (ANNA, BORIS, CLARA)] == [0, 1, 1]
    assert await cutter.cutting.cut_messages(cutter.connection, [ANNA, BORIS]) == set()
    assert [len(each) for each in (await cutter.windows(ANNA, BORIS)).values()] == [1, 1]


async def test_other_lock_of_the_user_does_not_block_windowing(cutter: Cutter) -> None:
    await cutter.say(ANNA, "home", 2000)
    await cutter.project()
    async with hold_lock(cutter.database, *ANNA), hold_lock(cutter.database, *ANNA, "compact"):
        assert await cutter.cutting.cut_messages(cutter.connection, [ANNA]) == set()
    assert len((await cutter.windows(ANNA))[ANNA]) == 1


async def test_scan_running_in_another_process_is_skipped(cutter: Cutter) -> None:
    settings = cutter.cutting._settings
    interval = PeriodicScan(cutter.database, settings, cutter.cutting)
    await cutter.say(ANNA, "home", 10)
    await cutter.project()
    async with hold_lock(cutter.database, "extract", "rounds"):
        await interval.continue_scans(cutter.connection)
        async with cutter.database.transaction() as connection:
            cursor = await connection.execute("SELECT count(*) FROM rounds")
            assert await cursor.fetchall() == [(0,)]
    await interval.continue_scans(cutter.connection)
    async with cutter.database.transaction() as connection:
        assert await (await connection.execute("SELECT tenant FROM rounds")).fetchall() == [("acme",)]


@pytest.mark.parametrize("count", [9, 10, 11, 20, 21, 35])
async def test_conversation_of_many_pages_is_windowed_completely(cutter: Cutter, count: int) -> None:
    """A page has ten messages in this test."""
    assert cutter.cutting._find_page_size("acme") == 10
    said = await cutter.say(ANNA, "home", *range(5000, 5000 - count, -1))
    await cutter.project()
    await cutter.cutting.cut_messages(cutter.connection, [ANNA])
    cut = (await cutter.windows(ANNA))[ANNA]
    ends = [said[min(place + 1, count - 1)] for place in range(0, count, 2)]
    assert cut == [("home", begin, end) for begin, end in zip(said[::2], ends, strict=True)]


async def test_pages_of_several_conversations_are_windowed(cutter: Cutter) -> None:
    places = [
        (ANNA, "home", 25),
        (ANNA, "trip", 12),
        (ANNA, "work", 3),
        (BORIS, "home", 10),
        (CLARA, "home", 31),
    ]
    said = {
        (owner, place): await cutter.say(owner, place, *range(5000, 5000 - count, -1))
        for owner, place, count in places
    }
    await cutter.project()
    await cutter.cutting.cut_messages(cutter.connection, [ANNA, BORIS, CLARA])
    cut = await cutter.windows(ANNA, BORIS, CLARA)
    for (owner, place), positions in said.items():
        covered = [(begin, end) for conversation, begin, end in cut[owner] if conversation == place]
        assert [begin for begin, _ in covered] == positions[::2]
        assert covered[-1][1] == positions[-1]


async def test_page_without_due_messages_is_read_once(cutter: Cutter) -> None:
    now = datetime.now(UTC).isoformat()
    for _ in range(12):
        await cutter.stock.say("...", "acme.anna.home", sent_at=now)
    await cutter.project()
    async with asyncio.timeout(60):
        await cutter.cutting.cut_messages(cutter.connection, [ANNA])
    assert (await cutter.windows(ANNA))[ANNA] == []
    assert await cutter.looked_at(ANNA) is not None


async def test_partial_window_waits_behind_full_ones(cutter: Cutter) -> None:
    said = await cutter.say(ANNA, "home", *range(13, 0, -1))
    await cutter.project()
    await cutter.cutting.cut_messages(cutter.connection, [ANNA])
    cut = (await cutter.windows(ANNA))[ANNA]
    assert [begin for _, begin, _ in cut] == said[:12:2]
    assert await cutter.looked_at(ANNA) is not None


@pytest.mark.parametrize("ages", [(100.0, 50.0, 20.0), (20.0, 50.0, 100.0), (50.0, 100.0, 20.0)])
async def test_user_is_checked_when_the_first_conversation_rests(
    cutter: Cutter, ages: tuple[float, float, float]
) -> None:
    begun = datetime.now(UTC)
    for conversation, age in zip("abc", ages, strict=True):
        await cutter.say(ANNA, conversation, age)
    await cutter.say(BORIS, "a", 5.0)
    await cutter.project()
    assert await cutter.cutting.cut_messages(cutter.connection, [ANNA, BORIS]) == set()
    ended = datetime.now(UTC)
    assert (await cutter.windows(ANNA))[ANNA] == []
    for owner, oldest in ((ANNA, 100.0), (BORIS, 5.0)):
        at = await cutter.looked_at(owner)
        assert at is not None
        rest = timedelta(seconds=600 - oldest)
        assert begun + rest - timedelta(seconds=1) <= at <= ended + rest


async def test_user_without_remaining_messages_is_not_checked_again(cutter: Cutter) -> None:
    await cutter.say(ANNA, "home", 2000)
    await cutter.project()
    await cutter.cutting.cut_messages(cutter.connection, [ANNA, BORIS])
    assert await cutter.looked_at(ANNA) is None
    assert await cutter.looked_at(BORIS) is None


async def test_user_with_unprojected_messages_is_checked_again(cutter: Cutter) -> None:
    await cutter.say(ANNA, "home", 2000)
    await cutter.say(BORIS, "home", 100)
    await cutter.project()
    for owner in (ANNA, BORIS):
        await cutter.say(owner, "home", 10)
    begun = datetime.now(UTC)
    await cutter.cutting.cut_messages(cutter.connection, [ANNA, BORIS, CLARA])
    assert len((await cutter.windows(ANNA))[ANNA]) == 1
    soon, rests = await cutter.looked_at(ANNA), await cutter.looked_at(BORIS)
    assert soon is not None
    assert begun + UNSETTLED_DELAY - timedelta(seconds=1) <= soon <= datetime.now(UTC) + UNSETTLED_DELAY
    assert rests is not None
    assert rests > soon, "by what is projected, it is known when that conversation rests"
    assert await cutter.looked_at(CLARA) is None


async def test_user_windowed_by_interval_is_not_checked_again(cutter: Cutter) -> None:
    said = await cutter.say(ANNA, "home", 20, 10)
    await cutter.project()
    await cutter.say(ANNA, "home", 5)
    await cutter.cutting.cut_messages(cutter.connection, [ANNA], all_due=True)
    assert (await cutter.windows(ANNA))[ANNA] == [("home", *said)]
    assert await cutter.looked_at(ANNA) is None


async def test_messages_without_content_to_read_are_logged_as_read(cutter: Cutter) -> None:
    said = await cutter.stock.say("...", "acme.anna.home", sent_at="2026-01-01T00:00:00Z")
    worth = await cutter.say(BORIS, "home", 2000)
    await cutter.project()
    await cutter.cutting.cut_messages(cutter.connection, [ANNA, BORIS])
    answered = [
        (delivery.subject, json.loads(delivery.body)["from_seq"], json.loads(delivery.body)["outcome"])
        async for page in read_event_pages(cutter.connection, "memory.*.*.window.answered.v1", 0)
        for delivery in page
    ]
    assert answered == [("memory.acme.anna.window.answered.v1", said, "nothing")]
    async with cutter.database.transaction() as connection:
        cursor = await connection.execute("SELECT user_id, is_answered, from_seq FROM windows ORDER BY 1")
        assert await cursor.fetchall() == [("anna", True, said), ("boris", False, worth[0])]


async def triggered(cutter: Cutter, users: Iterable[Owner]) -> set[Owner]:
    found = set(await list_trigger_subjects(cutter.connection, "work.extract.>"))
    return {owner for owner in users if build_trigger_subject("extract", *owner) in found}


async def test_only_users_with_enough_messages_are_triggered(cutter: Cutter) -> None:
    last = {}
    for owner, count in ((ANNA, 3), (BORIS, 2), (CLARA, 4)):
        last[owner] = (await cutter.say(owner, "home", *range(count, 0, -1)))[-1]
    await cutter.project()
    assert await cutter.cutting.schedule_reading(cutter.connection, last) == set()
    assert await triggered(cutter, last) == {ANNA, CLARA}
    for owner in last:
        at = await cutter.looked_at(owner)
        assert at is not None
        assert timedelta(seconds=590) < at - datetime.now(UTC) <= timedelta(seconds=600)


async def test_recently_checked_user_with_new_messages_is_postponed(
    cutter: Cutter,
) -> None:
    (first,) = await cutter.say(ANNA, "home", 1)
    await cutter.project()
    assert await cutter.cutting.schedule_reading(cutter.connection, {ANNA: first}) == set()
    assert await cutter.cutting.schedule_reading(cutter.connection, {ANNA: first}) == set()
    (later,) = await cutter.say(ANNA, "home", 1)
    assert await cutter.cutting.schedule_reading(cutter.connection, {ANNA: later, BORIS: later}) == {ANNA}


async def test_long_conversation_is_triggered_again_after_a_failed_trigger(cutter: Cutter) -> None:
    await cutter.say(ANNA, "home", 4)
    await cutter.project()
    await cutter.cutting.cut_messages(cutter.connection, [ANNA])  # schedules the check of an idle user
    last = {ANNA: (await cutter.say(ANNA, "home", 3, 2))[-1]}
    await cutter.project()
    stream_context = cutter.connection.jetstream()
    config = (await stream_context.stream_info(WORK)).config
    await stream_context.update_stream(config.evolve(subjects=["schedule.>"]))
    with pytest.raises(NoStreamResponseError):
        await cutter.cutting.schedule_reading(cutter.connection, last)
    await stream_context.update_stream(config)
    assert await cutter.cutting.schedule_reading(cutter.connection, last) == set()
    assert await triggered(cutter, last) == {ANNA}


async def test_tenant_without_extraction_is_not_windowed(cutter: Cutter) -> None:
    last = {}
    for owner in (ANNA, CLARA):
        last[owner] = (await cutter.say(owner, "home", *range(2003, 2000, -1)))[-1]
    await cutter.project()
    await cutter.set("acme", enabled=False)
    while cutter.cutting._settings.get_settings("acme").extraction.enabled:
        await cutter.connection.flush()
    assert await cutter.cutting.schedule_reading(cutter.connection, last) == set()
    assert await triggered(cutter, last) == {CLARA}
    await cutter.cutting.cut_messages(cutter.connection, [ANNA, CLARA])
    assert [len(each) for each in (await cutter.windows(ANNA, CLARA)).values()] == [0, 2]
    assert await cutter.looked_at(ANNA) is None
    assert (await cutter.connection.jetstream().stream_info(LOG)).state.messages == 6
