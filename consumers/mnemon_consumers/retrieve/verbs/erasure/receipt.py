"""Parts of a receipt: counts by store, and the stores that have not finished an erasure.

The functions may raise the errors of the servers that they ask: `DatabaseUnavailable`, `VectorsUnavailable`
and `nats.errors.Error`.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Final, NamedTuple

from nats.aio.client import Client
from pydantic import JsonValue
from tenacity import AsyncRetrying, RetryCallState, retry_if_result, stop_after_delay, wait_fixed

from mnemon_contracts.subjects import Owner
from mnemon_infra.broker.erasure.purge import count_matches, count_remaining_messages
from mnemon_infra.broker.erasure.scope import ErasedConversation, ErasedUser
from mnemon_infra.broker.streams.applied_position import read_applied_position
from mnemon_infra.broker.streams.triggers import has_waiting_sweep
from mnemon_infra.database.engine import Database
from mnemon_infra.database.erasure.erased_rows import (
    count_in_inactive_generations,
    count_rows_of_inactive_generations_with,
    count_rows_with,
)
from mnemon_infra.database.erasure.users import count_statistics_with, find_known_events
from mnemon_infra.database.tables import windows
from mnemon_infra.storage.erasure_register import ErasureRegister
from mnemon_infra.storage.object_store import StoreUnavailable
from mnemon_infra.vectors import port
from mnemon_infra.vectors.vector_index import VectorIndex

REGISTER_SECONDS: Final = 0.5
"""Minimum seconds in which the erasure register has to answer."""

PAUSE: Final = 0.05
"""Seconds between two checks whether the stores have finished."""

STORES: Final = "log", "dead_letters", "work", "database", "model_batches", "vectors"
"""Names of all stores that have to finish an erasure, besides the erasure register."""

PURGED: Final = "log", "dead_letters", "work", "model_batches"
"""Stores that have finished once `persist` has marked the row of the erasure as finished."""

REGISTER: Final = "register"
"""Name for the erasure register, which is pending until it has an entry of the erasure."""

GENERATIONS: Final = "generations"
"""Name for the sum of the counts of inactive generations."""


class RegisteredEvent(NamedTuple):
    """The event of an erasure, and the erasure register, which needs an entry for the event.

    `register` is None if no register is configured.
    """

    register: ErasureRegister | None
    owner: Owner
    event_id: str

    async def list_pending_stores(self, until: float) -> tuple[str, ...]:
        """Return `REGISTER` if the register lacks the entry or does not answer; else an empty tuple.

        The register has until the time `until` of the event loop, or `REGISTER_SECONDS` if less is left.
        """
        if self.register is None:
            return ()
        try:
            async with asyncio.timeout_at(max(until, asyncio.get_running_loop().time() + REGISTER_SECONDS)):
                return () if await self.register.has(self.owner, self.event_id) else (REGISTER,)
        except (StoreUnavailable, TimeoutError):
            return (REGISTER,)


def select_removed(before: Mapping[str, JsonValue], left: Collection[str]) -> dict[str, JsonValue]:
    """Return the counts of the stores that have finished. Until `log` has, `GENERATIONS` is left out, too.

    Args:
        before: the counts of all stores before the erasure.
        left: the stores that have not finished.
    """
    not_done = {*left, *([GENERATIONS] if "log" in left else [])}
    return {name: count for name, count in before.items() if name not in not_done}


def sum_generations(counts: Mapping[str, int]) -> dict[str, JsonValue]:
    """Return the sum of `counts` under the name `GENERATIONS`; empty without inactive generations."""
    return {GENERATIONS: sum(counts.values())} if counts else {}


def sum_counts(counts: Sequence[Mapping[str, JsonValue]]) -> dict[str, JsonValue]:
    """Return the sums by store of the counts of several erasures.

    `vectors` is absent if one of the counts lacks it.
    """
    sums: Counter[str] = Counter()
    for each in counts:
        sums.update({name: int(str(count)) for name, count in each.items()})
    if any("vectors" not in each for each in counts):
        sums.pop("vectors", None)
    return dict(sums)


async def wait_for_stores(
    not_done: Callable[[], Awaitable[tuple[str, ...]]], until: float
) -> tuple[str, ...]:
    """Wait for the stores until a time of the event loop; return the stores that have not finished.

    `not_done` returns the stores that have not finished at the time of the call. It is called at least once.
    """
    waiting = AsyncRetrying(
        retry=retry_if_result(bool),
        stop=stop_after_delay(max(0.0, until - asyncio.get_running_loop().time())),
        wait=wait_fixed(PAUSE),
        retry_error_callback=_read_last_result,
    )
    return await waiting(not_done)


def _read_last_result(state: RetryCallState) -> tuple[str, ...]:
    assert state.outcome, "the first attempt has an outcome"
    left: tuple[str, ...] = state.outcome.result()
    return left


async def find_unfinished_stores(
    connection: Client, registered: RegisteredEvent, position: int, is_settled: bool | None, until: float
) -> tuple[str, ...]:
    """Return the stores that have not finished an erasure.

    Args:
        connection: connection to the server that has the streams.
        registered: the event of the erasure.
        position: log position of this event.
        is_settled: whether `persist` has marked the row of the erasure as finished; None if there is no row
            yet.
        until: time of the event loop at which the register has to answer.
    """
    unregistered = await registered.list_pending_stores(until)
    if is_settled is None:
        return *STORES, *unregistered
    left = () if is_settled else PURGED
    vectors = () if await _are_points_gone(connection, registered.owner, position) else ("vectors",)
    return *left, *vectors, *unregistered


async def _are_points_gone(connection: Client, owner: Owner, position: int) -> bool:
    """Return whether `index` has passed the erasure and has no sweep of the user left to do.

    `position` is the log position of the erasure.
    """
    if await read_applied_position(connection.jetstream(), "index") < position:
        return False
    return not await has_waiting_sweep(connection, "index", owner)


async def count_stores(
    connection: Client, database: Database, scope: ErasedUser | ErasedConversation, rows: Mapping[str, int]
) -> dict[str, JsonValue]:
    """Count by store what an erasure would remove, without vectors; `rows` has the counts of each table."""
    return {
        **await count_remaining_messages(connection, scope),
        "database": sum(count for table, count in rows.items() if table != windows.name),
        "model_batches": rows.get(windows.name, 0),
        **sum_generations(await database.run_query(count_in_inactive_generations(scope))),
    }


async def count_matches_by_store(
    connection: Client, database: Database, owner: Owner, words: str
) -> dict[str, JsonValue]:
    """Count by store the entries of a user that contain the text `words`, regardless of letter case.

    The entry `statistics` has the number of columns whose statistics in PostgreSQL contain the text. These
    statistics have samples of the values of all users.
    """
    return {
        **await count_matches(connection, owner, words),
        "database": await database.run_query(count_rows_with(*owner, words)),
        "statistics": await database.run_query(count_statistics_with(words)),
        **sum_generations(await database.run_query(count_rows_of_inactive_generations_with(*owner, words))),
    }


async def count_event_points(vector_index: VectorIndex, owner: Owner, event_ids: Collection[str]) -> int:
    """Count the points of a user that were made from the events `event_ids`."""
    count = 0
    for collection in port.Collection:
        async for page in vector_index.vectors.scroll(collection, owner):
            count += sum(str(each.payload["event_id"]) in event_ids for each in page)
    return count


async def count_orphaned_points(
    database: Database, vector_index: VectorIndex, owner: Owner, below: int
) -> int:
    """Count the points of a user that have no row in the database.

    Of messages, only points below the log position `below` count.
    """
    count = 0
    for collection in port.Collection:
        async for page in vector_index.vectors.scroll(collection, owner):
            # Points of messages have a position. Other points count as old, and the check for a row decides.
            old = [each.payload for each in page if int(str(each.payload.get("seq", 0))) < below]
            events = [str(payload["event_id"]) for payload in old]
            known = await database.run_query(find_known_events(*owner, events))
            count += sum(event not in known for event in events)
    return count
