"""Windowing: cuts idle or long conversations into windows, each of which is read once."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from cachetools import LRUCache
from nats.aio.client import Client

from mnemon_consumers.extract.answers.answer_events import build_answered_event
from mnemon_consumers.extract.decide import cut_windows
from mnemon_contracts.streams import WORK
from mnemon_contracts.subjects import Owner, build_chat_filter, build_schedule_subject, build_trigger_subject
from mnemon_infra.broker.streams.applied_position import read_applied_position
from mnemon_infra.broker.streams.log_reader import read_last_position
from mnemon_infra.broker.streams.log_writer import append_events
from mnemon_infra.broker.streams.schedules import schedule_once
from mnemon_infra.database.engine import Connection, Database
from mnemon_infra.database.locks import try_locks
from mnemon_infra.database.messages.uncovered_messages import (
    UncoveredQuery,
    list_long_conversations,
    load_uncovered_messages,
)
from mnemon_infra.database.windows.window_repository import StoredWindow, insert_windows
from mnemon_infra.settings.store import LiveSettings

REMEMBERED_USERS: Final = 100_000
"""Maximum number of users whose next check a process remembers."""

PAGE: Final = 5
"""Approximate number of windows of each conversation that are cut at a time."""

CHECK_PAUSE: Final = 5.0
"""Seconds between two length checks of a user, so that a burst of messages causes few checks."""

CHECKED_AT_ONCE: Final = 200
"""Maximum number of users that one query checks."""

UNSETTLED_DELAY: Final = timedelta(seconds=60)
"""Maximum delay before the next check of a user with messages that are not projected yet."""

CLOCK_MARGIN: Final = timedelta(seconds=2)
"""Maximum time by which the server's clock may be ahead of this process's clock."""


class WindowCutter:
    """Checks users who sent messages, and cuts their messages into windows.

    All methods may raise `DatabaseUnavailable` and `nats.errors.Error`. After an error, repeat the call.
    """

    def __init__(self, database: Database, settings: LiveSettings) -> None:
        self._database = database
        self._settings = settings
        self._scheduled: LRUCache[Owner, datetime] = LRUCache(REMEMBERED_USERS)
        self._checked: LRUCache[Owner, tuple[datetime, int]] = LRUCache(REMEMBERED_USERS)

    async def schedule_reading(self, connection: Client, users: Mapping[Owner, int]) -> set[Owner]:
        """Schedule the reading of users' messages: when users are idle, or now if there are enough messages.

        `users` has the log position of each user's newest message.

        Returns:
            Users who were checked less than `CHECK_PAUSE` ago, to be checked again when this pause ends.
        """
        heard = [owner for owner in users if self._settings.get_settings(owner[0]).extraction.enabled]
        later: set[Owner] = set()
        for begin in range(0, len(heard), CHECKED_AT_ONCE):
            some = {owner: users[owner] for owner in heard[begin : begin + CHECKED_AT_ONCE]}
            await self._schedule_checks(connection, self._find_idle_times(some))
            later |= await self._check_lengths(connection, some)
        return later

    def _find_idle_times(self, users: Iterable[Owner]) -> dict[Owner, datetime]:
        """Return users to schedule a check for, each with the time at which all their conversations are idle.

        Users with a scheduled check are left out, unless it is due within `CLOCK_MARGIN` or half of the
        idle time, whichever is shorter.
        """
        now = datetime.now(UTC)
        idle = {owner: self._find_idle_time(owner[0]) for owner in users}
        return {
            owner: now + idle[owner]
            for owner in users
            if self._scheduled.get(owner, now) < now + min(CLOCK_MARGIN, idle[owner] / 2)
        }

    async def _check_lengths(self, connection: Client, users: Mapping[Owner, int]) -> set[Owner]:
        """Publish a trigger for each user with a conversation of at least `after_messages` unread messages.

        Users who were checked less than `CHECK_PAUSE` ago are not checked. Return those of them who have sent
        messages since that check.
        """
        now = datetime.now(UTC)
        new = [owner for owner in users if users[owner] > self._checked.get(owner, (now, 0))[1]]
        looked = [owner for owner in new if self._checked.get(owner, (now, 0))[0] <= now]
        wanted = [
            UncoveredQuery(
                *owner, self._settings.get_settings(owner[0]).extraction.after_messages, users[owner]
            )
            for owner in looked
        ]
        found = await self._database.run_query(list_long_conversations(wanted, "windows"))
        await asyncio.gather(
            *(
                self._trigger_user(connection, owner)
                for owner, long in zip(looked, found, strict=True)
                if long
            )
        )
        # Only now: after a failed trigger, the repeated call has to check these users again.
        again = now + timedelta(seconds=CHECK_PAUSE)
        self._checked.update((owner, (again, users[owner])) for owner in looked)
        return set(new) - set(looked)

    async def cut_messages(
        self, connection: Client, owners: Iterable[Owner], *, all_due: bool = False
    ) -> set[Owner]:
        """Cut the new messages of users; return users whose messages another process is cutting.

        With `all_due`, cut all messages, as if every conversation were idle.
        """
        wanted = [owner for owner in owners if self._settings.get_settings(owner[0]).extraction.enabled]
        users = wanted
        up_to = await read_applied_position(connection.jetstream())
        checks_at: dict[Owner, datetime] = {}
        busy: set[Owner] = set()
        while users:
            async with self._database.transaction() as transaction:
                free = await try_locks(transaction, [(*owner, "extract") for owner in users])
                busy |= {owner for owner, is_free in zip(users, free, strict=True) if not is_free}
                mine = [owner for owner, is_free in zip(users, free, strict=True) if is_free]
                users = await self._cut_page(connection, transaction, mine, up_to, all_due, checks_at)
        if not all_due:
            checks_at = await self._find_unsettled_users(connection, wanted, up_to) | checks_at
        await self._schedule_checks(connection, checks_at)
        return busy

    async def _cut_page(
        self,
        connection: Client,
        transaction: Connection,
        owners: Sequence[Owner],
        up_to: int,
        all_due: bool,
        check_at: dict[Owner, datetime],
    ) -> list[Owner]:
        """Cut up to a page of new messages of each conversation into windows.

        Args:
            connection: connection to the log.
            transaction: transaction in which the windows are written.
            owners: the users.
            up_to: log position of the last message to cut.
            all_due: whether all messages are due.
            check_at: receives, by user, the earliest time at which the messages left over are to be checked;
                those of a conversation that may have another page do not count.

        Returns:
            The users with a conversation that may have another page.
        """
        now = datetime.now(UTC)
        wanted = [UncoveredQuery(*owner, self._find_page_size(owner[0]), up_to) for owner in owners]
        found = await load_uncovered_messages(wanted, "windows")(transaction)
        more: list[Owner] = []
        to_read: list[StoredWindow] = []
        nothing: list[StoredWindow] = []
        for query, conversations in zip(wanted, found, strict=True):
            owner = query.tenant, query.user
            for unread in conversations:
                done = cut_windows(
                    unread.messages, now, self._settings.get_settings(owner[0]).extraction, all_due=all_due
                )
                for each in done.ranges:
                    window = StoredWindow(*owner, unread.conversation, each.from_seq, each.to_seq)
                    (to_read if each.messages else nothing).append(window)
                if done.ranges and len(unread.messages) == query.at_most:
                    more.append(owner)
                elif done.check_at is not None:
                    check_at[owner] = min(done.check_at, check_at.get(owner, done.check_at))
        await append_events(connection, [build_answered_event(each, "nothing") for each in nothing])
        await insert_windows(transaction, nothing, now, answered=True)
        await insert_windows(transaction, to_read, now)
        return list(dict.fromkeys(more))

    async def _find_unsettled_users(
        self, connection: Client, owners: Sequence[Owner], up_to: int
    ) -> dict[Owner, datetime]:
        """Return users with messages beyond position `up_to`, each with the time of the next check."""
        now = datetime.now(UTC)
        said = await asyncio.gather(
            *(read_last_position(connection, build_chat_filter(*owner, "message")) for owner in owners)
        )
        return {
            owner: now + min(self._find_idle_time(owner[0]), UNSETTLED_DELAY)
            for owner, seq in zip(owners, said, strict=True)
            if seq > up_to
        }

    async def _schedule_checks(self, connection: Client, users: Mapping[Owner, datetime]) -> None:
        await asyncio.gather(
            *(
                schedule_once(
                    connection,
                    build_schedule_subject("extract", *owner),
                    at,
                    build_trigger_subject("extract", *owner),
                )
                for owner, at in users.items()
            )
        )
        self._scheduled.update(users)

    async def _trigger_user(self, connection: Client, owner: Owner) -> None:
        await connection.jetstream().publish(build_trigger_subject("extract", *owner), b"", stream=WORK)

    def _find_idle_time(self, tenant: str) -> timedelta:
        return timedelta(seconds=self._settings.get_settings(tenant).extraction.idle_seconds)

    def _find_page_size(self, tenant: str) -> int:
        of = self._settings.get_settings(tenant).extraction
        return max(PAGE * of.window_messages, 2 * of.after_messages)
