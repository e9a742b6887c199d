"""How far the log is projected, where that matters before a model is asked or a fact is proposed."""

import asyncio
from collections.abc import Callable, Collection, Iterable
from datetime import timedelta
from typing import Final

import structlog
from nats.aio.client import Client

from mnemon_contracts.subjects import Owner, chat_filter, thing_filter
from mnemon_infra.broker.streams.applied_position import Position, log_end
from mnemon_infra.broker.streams.log_reader import last_position
from mnemon_infra.database.engine import Database
from mnemon_infra.database.locks import locked
from mnemon_infra.database.windows.batch_recovery import adopt
from mnemon_infra.settings.store import LiveSettings

log = structlog.get_logger("extract")

PATIENCE: Final = 5.0
"""Seconds for which the projections are waited for."""

TRIES: Final = 6
"""How often."""


class Projections:
    """What persist has written, and what it has not."""

    def __init__(self, database: Database, settings: LiveSettings) -> None:
        self._database = database
        self._settings = settings
        self._position = Position()
        self._end: int | None = None
        self._is_ready = False
        self._adopting = asyncio.Lock()

    async def ready(self, connection: Client) -> bool:
        """Whether all is known that was begun before this process: then it may begin something itself.

        The database may have been made anew. Then what was asked for, and perhaps paid, is known from the
        log alone, and only once that is projected.

        Raises:
            DatabaseUnavailable, nats.errors.Error: it is not known.
        """
        async with self._adopting:
            if self._is_ready:
                return True
            if self._end is None:
                self._end = await log_end(connection.jetstream())
            if await self._position.refresh(connection.jetstream()) < self._end:
                return False
            async with locked(self._database, "extract", "adopt"):
                if adopted := await adopt(self._database, self._deadline):
                    log.info("batches recovered from the log", batches=adopted)
            self._is_ready = True
            return True

    async def reach(self, connection: Client, seq: int) -> int:
        """Wait until the log is projected up to there, a little while at most; returns how far it is.

        Raises:
            nats.errors.Error: the server does not answer.
        """
        return await self._position.reach(connection.jetstream(), seq, PATIENCE)

    async def with_answers(self, connection: Client, owners: Iterable[Owner]) -> set[Owner]:
        """The users of whom everything is projected that was answered.

        Raises:
            nats.errors.Error: the server does not answer.
        """
        return await self._with(connection, owners, _answers)

    async def clears(self, connection: Client, owners: Collection[Owner]) -> None:
        """Wait until everything is projected that takes these users' messages away, and their batches.

        What is paid for does not wait for ever: it goes by what is known then.

        Raises:
            nats.errors.Error: the server does not answer.
        """
        for _ in range(TRIES):
            if await self._with(connection, owners, _clears) == set(owners):
                return
        log.error("projections behind, extraction may read erased messages", users=len(owners))

    async def _with(
        self, connection: Client, owners: Iterable[Owner], patterns: Callable[[Owner], list[str]]
    ) -> set[Owner]:
        async def last(owner: Owner) -> int:
            return max([await last_position(connection, pattern) for pattern in patterns(owner)])

        each = list(dict.fromkeys(owners))
        lasts = await asyncio.gather(*map(last, each))
        position = await self.reach(connection, max(lasts, default=0))
        return {owner for owner, seq in zip(each, lasts, strict=True) if seq <= position}

    def _deadline(self, tenant: str) -> timedelta:
        return timedelta(hours=self._settings.of(tenant).extraction.deadline_hours)


def _answers(owner: Owner) -> list[str]:
    return [thing_filter(*owner, "window")]


def _clears(owner: Owner) -> list[str]:
    chats = (chat_filter(*owner, each) for each in ("cleared", "started"))
    return [*chats, *(thing_filter(*owner, thing) for thing in ("user", "batch"))]
