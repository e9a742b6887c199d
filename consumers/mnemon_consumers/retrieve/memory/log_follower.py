"""Log follower: positions that consumers have applied, and events of a user beyond them."""

import json
from collections.abc import Callable
from typing import NamedTuple

from cachetools import LRUCache
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext

from mnemon_contracts.subjects import Owner, parse_owner
from mnemon_infra.broker.streams.applied_position import AppliedPosition, read_log_end
from mnemon_infra.broker.streams.log_reader import TAIL_LIMIT, read_user_tail
from mnemon_infra.database.projections.rows import Rows
from mnemon_infra.settings.store import LiveSettings


class UserTail(NamedTuple):
    """Rows of a user's events beyond a log position, and the position that they reach."""

    rows: Rows
    seq: int


class LogFollower:
    """Follows the applied positions of `persist` and `index`, and the changes of users.

    `users` is the maximum number of users whose newest change is remembered. The setting
    `wait_for_log_ms` limits the wait for a position. All coroutines may raise `nats.errors.Error`.
    """

    def __init__(self, settings: LiveSettings, users: int) -> None:
        self._settings = settings
        self._applied = AppliedPosition()
        self._indexed = AppliedPosition("index")
        self._newest_changes: LRUCache[Owner, int] = LRUCache(users)
        self._is_following = False
        self._connection: Client
        self._stream_context: JetStreamContext

    async def follow_changes(self, connection: Client, drop_user: Callable[[Owner], None]) -> None:
        """Subscribe to notices of changes, and call `drop_user` for each user whose memory changes."""

        async def note_change(message: Msg) -> None:
            owner = parse_owner(message.subject)
            drop_user(owner)
            if message.data:
                self._note_change(owner, json.loads(message.data)["seq"])

        self._connection = connection
        self._is_following = True
        self._stream_context = connection.jetstream()
        # The subscription bypasses FastStream, because a busy log has a notice for nearly every message.
        await connection.subscribe("changed.*.*", cb=note_change)
        await connection.flush()
        await self._applied.refresh(self._stream_context)
        await self._indexed.refresh(self._stream_context)

    def fix_position(self, position: int) -> None:
        """Set the applied positions of `persist` and `index`, for a snapshot, which follows no log."""
        self._applied.value = self._indexed.value = position

    @property
    def applied_position(self) -> int:
        """Return the applied position of `persist`, as far as this process knows."""
        return self._applied.value

    async def refresh_applied_position(self) -> int:
        """Ask the server for the applied position of `persist`, and return it."""
        return await self._applied.refresh(self._stream_context)

    async def await_applied_position(self, owner: Owner, min_seq: int | None, *, wait: bool = True) -> int:
        """Return the applied position of `persist`; wait for a limited time until it reaches `min_seq`.

        The call asks the server only if the known position is below `min_seq` or below an event that this
        process knows of. With `wait=False`, the call asks at most once, and does not wait. The result may be
        below `min_seq`.
        """
        return await self._await_position(self._applied, owner, min_seq, wait=wait)

    async def await_indexed_position(self, owner: Owner, min_seq: int | None) -> int:
        """Return the applied position of `index`; wait for `min_seq` as `await_applied_position` does."""
        return await self._await_position(self._indexed, owner, min_seq)

    def has_to_read_tail(self, position: int, min_seq: int | None) -> bool:
        """Return whether rows as of the applied position may lack events that a request has to reflect.

        Args:
            position: the applied position; 0 if it is unknown.
            min_seq: log position that the request has to reflect; None if it names none.
        """
        # Position 0 means unknown: rows may exist before the first acknowledgement.
        return (min_seq is not None and position < min_seq) or (not position and self._is_following)

    def covers_changes(self, owner: Owner, position: int) -> bool:
        """Return whether a position includes the newest change of a user, as far as this process knows."""
        return position >= self._newest_changes.get(owner, 0)

    async def read_tail(self, owner: Owner, position: int) -> UserTail:
        """Read up to `TAIL_LIMIT` of a user's events beyond a position, as rows that `persist` will write."""
        end = await read_log_end(self._stream_context)
        tail = await read_user_tail(self._connection, *owner, after=position)
        reached = tail[-1].sequence if len(tail) == TAIL_LIMIT else max(position, end)
        return UserTail(Rows.from_deliveries(tail), reached)

    def _note_change(self, owner: Owner, seq: int) -> None:
        self._newest_changes[owner] = max(seq, self._newest_changes.get(owner, 0))
        self._applied.note_event(seq)
        self._indexed.note_event(seq)

    async def _await_position(
        self, position: AppliedPosition, owner: Owner, min_seq: int | None, *, wait: bool = True
    ) -> int:
        wanted = min_seq or 0
        if position.value >= wanted and not position.is_behind:
            return position.value
        if not wait or position.value >= wanted:
            reached = await position.refresh(self._stream_context)  # lower after a reset of the consumer
            if not wait or reached >= wanted:
                return reached
        tenant, _ = owner
        patience = self._settings.get_settings(tenant).wait_for_log_ms / 1000
        return await position.wait_for(self._stream_context, wanted, patience)
