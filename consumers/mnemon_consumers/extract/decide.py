"""Cuts conversations into windows. No I/O, no clock, no randomness."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from mnemon_consumers.extract.message_selection import may_be_worth_reading
from mnemon_contracts.settings.language_models import Extraction
from mnemon_infra.database.messages.uncovered_messages import MessageOutline


class WindowRange(NamedTuple):
    """A window as a range of log positions in a conversation: the messages that one request reads.

    Attributes:
        from_seq: log position of the first message.
        to_seq: log position of the last message.
        messages: the messages that may be worth reading; without such messages, no model is asked.
    """

    from_seq: int
    to_seq: int
    messages: Sequence[MessageOutline]


class WindowCut(NamedTuple):
    """Windows to read now, and the time of the next check; the time is None if no message is left over."""

    ranges: Sequence[WindowRange]
    check_at: datetime | None


def cut_windows(
    messages: Sequence[MessageOutline], now: datetime, settings: Extraction, *, all_due: bool = False
) -> WindowCut:
    """Cut the new messages of a conversation into windows, oldest first.

    A conversation is idle once `idle_seconds` have passed since its last message. Then all of its messages
    are due. Before that, windows are due if the conversation has at least `after_messages` messages: all full
    windows, and a last window of at least `after_messages` messages. Only messages that may be
    worth reading count. Messages between windows belong to the window before them, so that each message is
    read once.

    Args:
        messages: the messages of the conversation that belong to no window, oldest first.
        now: the current time.
        settings: the tenant's settings for extraction.
        all_due: whether all messages are due even if the conversation is not idle yet.
    """
    if not messages:
        return WindowCut((), None)
    worthy = [place for place, message in enumerate(messages) if may_be_worth_reading(message)]
    size, enough = settings.window_messages, settings.after_messages
    first = range(0, len(worthy), size)
    begins = [worthy[place] for place in first]
    idle_at = _find_idle_time(messages[-1].sent_at, now, settings)
    if all_due or idle_at <= now:
        return WindowCut(_build_ranges(messages, begins or [0], len(messages)), None)
    if len(worthy) < enough:
        return WindowCut((), idle_at)
    if len(worthy) - first[-1] < min(size, enough):
        *begins, end = begins
        return WindowCut(_build_ranges(messages, begins, end), idle_at)
    return WindowCut(_build_ranges(messages, begins, len(messages)), None)


def _find_idle_time(last: datetime, now: datetime, settings: Extraction) -> datetime:
    """Return the time at which a conversation becomes idle; `last` is the time of its last message."""
    idle = timedelta(seconds=settings.idle_seconds)
    # A bot whose clock is ahead by more than `idle` would keep the conversation from ever being idle.
    return last + idle if last <= now + idle else now


def _build_ranges(messages: Sequence[MessageOutline], begins: Sequence[int], end: int) -> list[WindowRange]:
    """Return a window from each index in `begins` to the next index; the last window ends before `end`.

    The first window always begins with the first message.
    """
    ranges = []
    for begin, following in pairwise([0, *begins[1:], end]):
        part = messages[begin:following]
        read = [message for message in part if may_be_worth_reading(message)]
        ranges.append(WindowRange(part[0].seq, part[-1].seq, read))
    return ranges
