"""A user's memory as lines that `mnemon import jsonl` takes (`mnemon.operations.memory_lines`).

Messages come first, with the starts and clears of conversations. Each summary or answered window follows the
last message that it covers, so that an import publishes a summary together with its messages, and `compact`
does not write another. Then come facts, tasks and documents, and at the end profile fields. The order of
lines does not depend on the time of the export: an export of imported lines gives the same lines.
"""

import heapq
import json
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import AsyncGenerator
from contextlib import aclosing
from datetime import UTC
from itertools import groupby
from operator import attrgetter
from typing import Any

from mnemon.operations.memory_lines import (
    HEADER,
    MessagePositions,
    derive_portable_id,
    derive_start_id,
    map_positions,
)
from mnemon_contracts.base import Event
from mnemon_contracts.events.chat import ToolCall
from mnemon_contracts.events.memory import FactEvent
from mnemon_contracts.identity import derive_started_conversation
from mnemon_contracts.registry import EVENTS
from mnemon_contracts.subjects import Owner
from mnemon_infra.database.memory.export import (
    ConversationChange,
    ExportedMemory,
    KeptField,
    KeptMemory,
    KeptMessage,
)

ExportedItem = KeptMessage | ConversationChange | KeptMemory
PlacedItem = tuple[tuple[int, int], ExportedItem]
"""Sort key and item; the key is a log position, and the rank of the item among those at this position."""


def format_header() -> str:
    """Return the header line of an export, which names its format."""
    return json.dumps(HEADER)


async def generate_lines(memory: ExportedMemory, owner: Owner) -> AsyncGenerator[str, None]:
    """Yield the lines of a user's memory: an event on each line, in the order that the module describes."""
    writing = _LineWriter(owner)
    async with aclosing(_generate_items(memory)) as said:
        async for each in said:
            match each:
                case KeptMessage():
                    yield writing.format_message(each)
                case ConversationChange():
                    yield writing.format_change(each)
                case KeptMemory() if line := writing.format_memory(each):
                    yield line
    async with aclosing(memory.stream_memories()) as memories:
        async for kept in memories:
            if line := writing.format_memory(kept):
                yield line
    fields = [each async for each in memory.stream_profile_fields()]
    for _, together in groupby(fields, key=attrgetter("event_id")):
        yield writing.format_fields(list(together))


async def _generate_items(memory: ExportedMemory) -> AsyncGenerator[ExportedItem, None]:
    """Yield messages, changes of conversation, summaries and answered windows, in order.

    A summary or window follows the last remaining message that it covers, even if the conversation has
    changed since. If the first message of a conversation is gone, a start names the conversation: the
    subjects of later messages may only have `-`, the current conversation.
    """
    held: list[ConversationChange] = []
    async with aclosing(
        _merge_streams(_place_changes(memory), _place_messages(memory), _place_ranges(memory))
    ) as merged:
        async for each in merged:
            if isinstance(each, ConversationChange):
                held.append(each)
                continue
            if isinstance(each, KeptMessage):
                for change in held:
                    if change.event != "named" or change.seq != each.seq:
                        yield change
                held = []
            yield each
    for change in held:
        yield change


async def _place_changes(memory: ExportedMemory) -> AsyncGenerator[PlacedItem, None]:
    async for change in memory.stream_conversation_changes():
        yield (change.seq, 0), change


async def _place_messages(memory: ExportedMemory) -> AsyncGenerator[PlacedItem, None]:
    async for message in memory.stream_messages():
        yield (message.seq, 1), message


async def _place_ranges(memory: ExportedMemory) -> AsyncGenerator[PlacedItem, None]:
    async for to_seq, kept in memory.stream_ranges():
        yield (to_seq, 2), kept


async def _merge_streams(*streams: AsyncGenerator[PlacedItem, None]) -> AsyncGenerator[ExportedItem, None]:
    """Merge streams, each of which is in order, into one stream in order."""
    heads: list[tuple[tuple[int, int], int, ExportedItem]] = []

    async def pull_item(number: int) -> None:
        async for place, item in streams[number]:
            heapq.heappush(heads, (place, number, item))
            return

    for number in range(len(streams)):
        await pull_item(number)
    while heads:
        _, number, item = heapq.heappop(heads)
        yield item
        await pull_item(number)


def _format_calls(kept: list[Any] | None) -> list[dict[str, Any]] | None:
    """Return tool calls with only the fields of the contract; None if the message has none.

    A row has the calls as the bot sent them.
    """
    if kept is None:
        return None
    calls = (ToolCall.model_validate(each) for each in kept)
    return [each.model_dump(mode="json", exclude_none=True) for each in calls]


class _LineWriter:
    """Writer of the lines of one user, in order, which numbers the messages."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._owner_fields = dict(zip(("tenant", "user"), owner, strict=True))
        self._seqs = array("q")
        self._numbers = MessagePositions(self._find_number, self._find_first_number, self._find_last_number)

    def format_message(self, kept: KeptMessage) -> str:
        self._seqs.append(kept.seq)
        body = {
            "id": derive_portable_id(*self._owner, kept.event_id, kept.content),
            "role": kept.role,
            "content": kept.content,
            "sent_at": kept.sent_at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
            "name": kept.name,
            "task_id": kept.task_id,
            "tool_calls": _format_calls(kept.tool_calls),
            "metadata": kept.metadata,
        }
        body = {name: value for name, value in body.items() if value is not None}
        return self._format_line("message.v1", body, kept.conversation, len(self._seqs))

    def format_change(self, change: ConversationChange) -> str:
        conversation, event_id = change.conversation, derive_portable_id(*self._owner, change.event_id)
        if change.event == "named":
            event_id = derive_start_id(*self._owner, str(conversation))
        elif (
            conversation == derive_started_conversation(*self._owner, change.event_id)
            and event_id == change.event_id
        ):
            conversation = None  # published to `-`: an import derives the name from the event again
        body: dict[str, Any] = {"id": event_id}
        if change.discard_previous:
            body["discard_previous"] = True
        return self._format_line(
            "cleared.v1" if change.event == "cleared" else "started.v1", body, conversation
        )

    def format_memory(self, kept: KeptMemory) -> str | None:
        """Return the line of a memory event; None for a summary or window of which no message is left."""
        contract = EVENTS[kept.event]
        # Validate as JSON, the form in which the contract has times. The database adds white space to JSON.
        event: Event | None = contract.latest.model_validate_json(json.dumps(kept.body))
        assert event is not None
        changes: dict[str, Any] = {"id": derive_portable_id(*self._owner, kept.event_id)}
        if isinstance(event, FactEvent):
            changes["at"] = kept.at.astimezone(UTC)
        event = map_positions(event.model_copy(update=changes), self._numbers)
        if event is None:
            return None
        body = event.model_dump(mode="json", exclude_none=True)
        return self._format_line(f"{kept.event}.v{len(contract.versions)}", body)

    def format_fields(self, together: list[KeptField]) -> str:
        body = {
            "id": derive_portable_id(*self._owner, together[0].event_id),
            "fields": {each.name: each.value for each in together},
        }
        return self._format_line("profile.set.v1", body)

    def _format_line(
        self, event: str, body: dict[str, Any], conversation: str | None = None, n: int | None = None
    ) -> str:
        record: dict[str, Any] = {**self._owner_fields, "event": event}
        if conversation is not None:
            record["conversation"] = conversation
        if n is not None:
            record["n"] = n
        return json.dumps({**record, "body": body}, ensure_ascii=False, separators=(",", ":"))

    def _find_number(self, seq: int) -> int | None:
        place = bisect_left(self._seqs, seq)
        return place + 1 if place < len(self._seqs) and self._seqs[place] == seq else None

    def _find_first_number(self, seq: int) -> int | None:
        place = bisect_left(self._seqs, seq)
        return place + 1 if place < len(self._seqs) else None

    def _find_last_number(self, seq: int) -> int | None:
        return bisect_right(self._seqs, seq) or None
