"""Projection lag: waits until the log is projected far enough to ask a model or to propose a fact."""

import asyncio
from collections.abc import Callable, Collection, Iterable
from datetime import timedelta
from typing import Final

import structlog
from nats.aio.client import Client

from mnemon_contracts.subjects import Owner, build_chat_filter, build_thing_filter
from mnemon_infra.broker.streams.applied_position import AppliedPosition, read_log_end
from mnemon_infra.broker.streams.log_reader import read_last_position
from mnemon_infra.database.engine import Database
from mnemon_infra.database.locks import hold_lock
from mnemon_infra.database.projections.batch_recovery import recover_batches
from mnemon_infra.settings.store import LiveSettings

log = structlog.get_logger("extract")

WAIT_SECONDS: Final = 5.0
"""Maximum seconds of one wait for the projections."""

MOST_WAITS: Final = 6
"""Maximum number of waits of `WAIT_SECONDS` each."""


class ProjectionLag:
    """Lag of the projections behind the log, by the applied position of `persist`.

    All methods may raise `nats.errors.Error`, and `is_ready` also `DatabaseUnavailable`.
    """

    def __init__(self, database: Database, settings: LiveSettings) -> None:
        self._database = database
        self._settings = settings
        self._position = AppliedPosition()
        self._end: int | None = None
        self._is_ready = False
        self._recovery = asyncio.Lock()

    async def is_ready(self, connection: Client) -> bool:
        """Return whether the projections have all events of earlier processes, so that extraction may begin.

        A new database lacks the requests that were made for windows, and perhaps paid, until the log is
        projected. Before the method first returns True, it recovers the batches that only the log has.
        """
        async with self._recovery:
            if self._is_ready:
                return True
            if self._end is None:
                self._end = await read_log_end(connection.jetstream())
            if await self._position.refresh(connection.jetstream()) < self._end:
                return False
            async with hold_lock(self._database, "extract", "adopt"):
                if recovered := await recover_batches(self._database, self._find_deadline):
                    log.info("batches recovered from the log", batches=recovered)
            self._is_ready = True
            return True

    async def await_position(self, connection: Client, seq: int) -> int:
        """Wait up to `WAIT_SECONDS` until the log is projected up to `seq`; return the position reached."""
        return await self._position.wait_for(connection.jetstream(), seq, WAIT_SECONDS)

    async def find_answered_users(self, connection: Client, owners: Iterable[Owner]) -> set[Owner]:
        """Wait up to `WAIT_SECONDS` for the projections; return the users whose answers are all projected."""
        return await self._find_projected_users(connection, owners, _list_answer_filters)

    async def await_clears(self, connection: Client, owners: Collection[Owner]) -> None:
        """Wait until the batch events of these users and all removals of their messages are projected.

        Answers are paid for, so after `MOST_WAITS` attempts the call logs an error and returns, although some
        of these events are not projected.
        """
        for _ in range(MOST_WAITS):
            if await self._find_projected_users(connection, owners, _list_clear_filters) == set(owners):
                return
        log.error("projections fell behind, removed messages may yield facts", users=len(owners))

    async def _find_projected_users(
        self, connection: Client, owners: Iterable[Owner], list_filters: Callable[[Owner], list[str]]
    ) -> set[Owner]:
        async def read_last(owner: Owner) -> int:
            return await read_last_position(connection, *list_filters(owner))

        each = list(dict.fromkeys(owners))
        lasts = await asyncio.gather(*map(read_last, each))
        position = await self.await_position(connection, max(lasts, default=0))
        return {owner for owner, seq in zip(each, lasts, strict=True) if seq <= position}

    def _find_deadline(self, tenant: str) -> timedelta:
        return timedelta(hours=self._settings.get_settings(tenant).extraction.deadline_hours)


def _list_answer_filters(owner: Owner) -> list[str]:
    return [build_thing_filter(*owner, "window")]


def _list_clear_filters(owner: Owner) -> list[str]:
    chats = (build_chat_filter(*owner, each) for each in ("cleared", "started"))
    return [*chats, *(build_thing_filter(*owner, thing) for thing in ("user", "batch"))]
