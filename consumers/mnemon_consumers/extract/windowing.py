"""Cuts conversations into windows, each of which is read once, when they rest or have grown long."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from cachetools import LRUCache
from nats.aio.client import Client

from mnemon_consumers.extract.decide import answered, cut
from mnemon_contracts.events.memory import Window
from mnemon_contracts.streams import WORK
from mnemon_contracts.subjects import Owner, chat_filter, user_schedule, work_subject
from mnemon_infra.broker.streams.applied_position import read_applied_position
from mnemon_infra.broker.streams.log_reader import read_last_position
from mnemon_infra.broker.streams.log_writer import LogEvent, append_events
from mnemon_infra.broker.streams.schedules import schedule_once
from mnemon_infra.database.engine import Connection, Database
from mnemon_infra.database.locks import lock_those_free
from mnemon_infra.database.messages.unsummarised import UnsummarisedQuery, long_uncovered, uncovered
from mnemon_infra.database.windows.window_repository import StoredWindow, put
from mnemon_infra.settings.store import LiveSettings

USERS: Final = 100_000
"""Users whose next check a process remembers."""

PAGE: Final = 5
"""Approximate number of windows of each conversation that are cut at a time."""

SELDOM: Final = 5.0
"""Seconds between two length checks of a user, so that a burst of messages causes few of them."""

LOOKED_AT: Final = 200
"""Users that are checked together."""

UNSETTLED: Final = timedelta(seconds=60)
"""Time after which a user is checked again who has messages that are not projected yet."""

MARGIN: Final = timedelta(seconds=2)
"""Time by which the server's clock may be ahead of this process's clock."""


class Cutting:
    """Checks users who sent messages, and cuts their messages into windows."""

    def __init__(self, database: Database, settings: LiveSettings) -> None:
        self._database = database
        self._settings = settings
        self._armed: LRUCache[Owner, datetime] = LRUCache(USERS)
        self._looked: LRUCache[Owner, tuple[datetime, int]] = LRUCache(USERS)

    async def said(self, connection: Client, users: Mapping[Owner, int]) -> set[Owner]:
        """Have the messages of users read when they rest, or at once if there are enough of them.

        Args:
            connection: connection for triggers and schedules.
            users: users, each with the log position of their newest message.

        Returns:
            Users who were checked just before: they have to be checked again after `SELDOM`.

        Raises:
            DatabaseUnavailable, nats.errors.Error: the call can be repeated.
        """
        heard = [owner for owner in users if self._settings.of(owner[0]).extraction.enabled]
        later: set[Owner] = set()
        for begin in range(0, len(heard), LOOKED_AT):
            some = {owner: users[owner] for owner in heard[begin : begin + LOOKED_AT]}
            await self._arm(connection, self._resting(some))
            later |= await self._look(connection, some)
        return later

    def _resting(self, users: Iterable[Owner]) -> dict[Owner, datetime]:
        """Return when users will rest, for those without a schedule that is still ahead."""
        now = datetime.now(UTC)
        idle = {owner: self._idle(owner[0]) for owner in users}
        return {
            owner: now + idle[owner]
            for owner in users
            if self._armed.get(owner, now) < now + min(MARGIN, idle[owner] / 2)
        }

    async def _look(self, connection: Client, users: Mapping[Owner, int]) -> set[Owner]:
        """Trigger users with enough messages; return users who were checked just before."""
        now = datetime.now(UTC)
        new = [owner for owner in users if users[owner] > self._looked.get(owner, (now, 0))[1]]
        looked = [owner for owner in new if self._looked.get(owner, (now, 0))[0] <= now]
        wanted = [
            UnsummarisedQuery(*owner, self._settings.of(owner[0]).extraction.after_messages, users[owner])
            for owner in looked
        ]
        found = await self._database.read(long_uncovered(wanted, "windows"))
        again = now + timedelta(seconds=SELDOM)
        self._looked.update((owner, (again, users[owner])) for owner in looked)
        await asyncio.gather(
            *(self._trigger(connection, owner) for owner, long in zip(looked, found, strict=True) if long)
        )
        return set(new) - set(looked)

    async def cut(self, connection: Client, owners: Iterable[Owner], *, rested: bool = False) -> set[Owner]:
        """Cut the new messages of users; return users whom another process is cutting now.

        Args:
            connection: connection to the log, triggers and schedules.
            owners: the users.
            rested: whether to cut all messages, as if every conversation rested.

        Raises:
            DatabaseUnavailable, nats.errors.Error: the call can be repeated.
        """
        wanted = [owner for owner in owners if self._settings.of(owner[0]).extraction.enabled]
        users = wanted
        up_to = await read_applied_position(connection.jetstream())
        looked_at: dict[Owner, datetime] = {}
        busy: set[Owner] = set()
        while users:
            async with self._database.transaction() as held:
                free = await lock_those_free(held, [(*owner, "extract") for owner in users])
                busy |= {owner for owner, is_free in zip(users, free, strict=True) if not is_free}
                mine = [owner for owner, is_free in zip(users, free, strict=True) if is_free]
                users = await self._cut(connection, held, mine, up_to, rested, looked_at)
        if not rested:
            looked_at = await self._unsettled(connection, wanted, up_to) | looked_at
        await self._arm(connection, looked_at)
        return busy

    async def _cut(
        self,
        connection: Client,
        held: Connection,
        owners: Sequence[Owner],
        up_to: int,
        rested: bool,
        look_at: dict[Owner, datetime],
    ) -> list[Owner]:
        """Cut a page of each conversation; return the users who have more."""
        now = datetime.now(UTC)
        wanted = [UnsummarisedQuery(*owner, self._page(owner[0]), up_to) for owner in owners]
        found = await uncovered(wanted, "windows")(held)
        more: list[Owner] = []
        to_read: list[StoredWindow] = []
        nothing: list[StoredWindow] = []
        for whose, stretches in zip(wanted, found, strict=True):
            owner = whose.tenant, whose.user
            for stretch in stretches:
                done = cut(stretch.messages, now, self._settings.of(owner[0]).extraction, rested=rested)
                for each in done.ranges:
                    window = StoredWindow(*owner, stretch.conversation, each.from_seq, each.to_seq)
                    (to_read if each.read else nothing).append(window)
                if done.ranges and len(stretch.messages) == whose.at_most:
                    more.append(owner)
                elif done.look_at is not None:
                    look_at[owner] = min(done.look_at, look_at.get(owner, done.look_at))
        await append_events(connection, [_nothing(window) for window in nothing])
        await put(held, nothing, now, answered=True)
        await put(held, to_read, now)
        return list(dict.fromkeys(more))

    async def _unsettled(
        self, connection: Client, owners: Sequence[Owner], up_to: int
    ) -> dict[Owner, datetime]:
        """Return users with messages beyond the position, which are not cut yet, and when to check again."""
        now = datetime.now(UTC)
        said = await asyncio.gather(
            *(read_last_position(connection, chat_filter(*owner, "message")) for owner in owners)
        )
        return {
            owner: now + min(self._idle(owner[0]), UNSETTLED)
            for owner, seq in zip(owners, said, strict=True)
            if seq > up_to
        }

    async def _arm(self, connection: Client, users: Mapping[Owner, datetime]) -> None:
        await asyncio.gather(
            *(
                schedule_once(
                    connection, user_schedule("extract", *owner), at, work_subject("extract", *owner)
                )
                for owner, at in users.items()
            )
        )
        self._armed.update(users)

    async def _trigger(self, connection: Client, owner: Owner) -> None:
        await connection.jetstream().publish(work_subject("extract", *owner), b"", stream=WORK)

    def _idle(self, tenant: str) -> timedelta:
        return timedelta(seconds=self._settings.of(tenant).extraction.idle_seconds)

    def _page(self, tenant: str) -> int:
        of = self._settings.of(tenant).extraction
        return max(PAGE * of.window_messages, 2 * of.after_messages)


def _nothing(window: StoredWindow) -> LogEvent:
    return answered(
        Window(
            tenant=window.tenant,
            user=window.user,
            conversation=window.conversation,
            from_seq=window.from_seq,
            to_seq=window.to_seq,
        ),
        "nothing",
    )
