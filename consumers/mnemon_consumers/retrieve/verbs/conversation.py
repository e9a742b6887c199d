"""`history` and `status`: messages of a conversation, and counts."""

from collections.abc import Coroutine
from typing import Any

from mnemon_consumers.retrieve import decide
from mnemon_consumers.retrieve.history_reply import FastHistory, MessageTooLong
from mnemon_consumers.retrieve.memory.cache import PositionedValue
from mnemon_consumers.retrieve.memory.memory import Memory
from mnemon_consumers.retrieve.snapshots.snapshot_resolver import SnapshotMoment, SnapshotResolver
from mnemon_consumers.retrieve.verbs.outcomes import find_outcome, list_rejected_events
from mnemon_consumers.retrieve.verbs.request_context import await_reply
from mnemon_consumers.retrieve.verbs.user_log import UserLog
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.subjects import Address, Owner
from mnemon_contracts.verbs.ask import HistoryV1, Reply, StatusReplyV1, StatusV1
from mnemon_infra.broker.service import Refusal
from mnemon_infra.database.memory.user_memory import ConversationView


class ConversationVerbs:
    """Answers `history` (the last messages) and `status` (counts of messages, and outcomes of events)."""

    def __init__(self, memory: Memory, snapshots: SnapshotResolver, log: UserLog) -> None:
        self._memory = memory
        self._snapshots = snapshots
        self._log = log

    def history(self, address: Address, body: bytes) -> bytes | Coroutine[Any, Any, bytes]:
        request = HistoryV1.parse(body or b"{}")
        owner = address.owner
        if request.as_of is not None:
            return await_reply(self._read_history_as_of(owner, request, request.as_of))
        if request.before is None:
            cached = self._memory.find_cached_messages(
                owner, request.conversation, request.limit, request.min_seq
            )
            if cached is not None:
                return self._build_history_body(cached, request.limit)
        return await_reply(self._read_history(self._memory, owner, request, request.min_seq))

    async def _read_history(
        self, memory: Memory, owner: Owner, request: HistoryV1, min_seq: int | None
    ) -> bytes:
        wanted = owner, request.conversation, request.limit
        seen = (
            await memory.load_messages(*wanted, min_seq)
            if request.before is None
            else await memory.load_messages_before(*wanted, request.before, min_seq)
        )
        return self._build_history_body(seen, request.limit)

    async def _read_history_as_of(self, owner: Owner, request: HistoryV1, moment: SnapshotMoment) -> bytes:
        async with self._snapshots.open_view(owner, moment, request.min_seq) as (memory, _, _):
            return await self._read_history(memory, owner, request, None)

    def _build_history_body(self, seen: PositionedValue[ConversationView], limit: int) -> bytes:
        """Return the last messages of a conversation, as many as have room, as the body of a reply.

        Raises:
            Refusal: the newest message alone is longer than a reply may be.
        """
        entries = decide.build_history(seen.value.messages, limit)
        try:
            left_out = min(seen.value.left_out, limit - len(entries)) or None
            reply = FastHistory(seen.seq, seen.value.conversation, entries, left_out)
            return reply.encode_newest(self._log.reply_limit)
        except MessageTooLong as error:
            problem = (
                f"the message at log position {error.seq} is longer than a reply may be, "
                f"{self._log.reply_limit:,} bytes by `max_payload` of the NATS server; to read the messages "
                f"before it, give `before` {error.seq} and `conversation` {seen.value.conversation}"
            )
            raise Refusal("refused", problem) from error

    def status(self, address: Address, body: bytes) -> Coroutine[Any, Any, Reply]:
        request = StatusV1.parse(body or b"{}")

        async def read_status() -> Reply:
            end = await self._log.read_end()
            if request.event_seq is not None and request.event_seq > end:
                raise InvalidBody(
                    "event_seq",
                    f"the log has no event at position {request.event_seq}: it ends at {end}. Give the"
                    " position that the publish returned",
                )
            if request.event_seq and not await self._log.may_be_owned(address, request.event_seq):
                raise InvalidBody(
                    "event_seq",
                    f"the event at position {request.event_seq} is not of this user: its subject names"
                    " another user, or spells the user in another way. Check the subject and the event id of"
                    " the publish",
                )
            wanted = max(request.min_seq or 0, request.event_seq or 0) or None
            seen = await self._memory.load_counts(address.owner, wanted)
            counts = seen.value
            applied = self._memory.applied_position
            # Dead letters are read after the position: a dead letter is stored before the position passes its
            # event.
            letters = await self._log.read_rejected_letters(address)
            return StatusReplyV1(
                seen_seq=seen.seq,
                conversation=counts.conversation,
                conversations=counts.conversations,
                messages=counts.messages,
                first_at=counts.first_at,
                last_at=counts.last_at,
                log_seq=end,
                rejected=list_rejected_events(letters),
                outcome=find_outcome(request.event_seq, letters, applied) if request.event_seq else None,
            )

        return await_reply(read_status())
