"""Accounts for every visible message of a conversation: shown, covered by a shown summary, or left out."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, Self

from contracts.ask import ContextCoverage
from infra.database.message_counts import MessageCount
from infra.database.reading import ConversationView, StoredRow

Outcome = Literal["shown", "summarised", "summary left out", "left out"]


class SummaryRange(Protocol):
    """A summary, by the log positions that it covers."""

    @property
    def from_seq(self) -> int: ...

    @property
    def to_seq(self) -> int: ...


class AccountedMessages(NamedTuple):
    """Numbers of messages; each message of the conversation is in one of them.

    Attributes:
        shown: in whole or in part.
        summarised: not shown, and covered by a summary that is shown.
        in_summaries_left_out: not shown, and covered by summaries that are not shown either.
        left_out: neither shown nor covered.
    """

    shown: int
    summarised: int
    in_summaries_left_out: int
    left_out: int

    @property
    def coverage(self) -> ContextCoverage:
        return ContextCoverage(
            shown=self.shown,
            summarised=self.summarised,
            left_out=self.in_summaries_left_out + self.left_out,
        )


def is_covered(seq: int, summaries: Iterable[SummaryRange]) -> bool:
    """Whether one of the summaries covers the message at a log position."""
    return any(summary.from_seq <= seq <= summary.to_seq for summary in summaries)


def last_covered(summaries: Iterable[SummaryRange]) -> int:
    """The log position up to which summaries reach; 0 without a summary."""
    return max((summary.to_seq for summary in summaries), default=0)


def has_whole_tail(view: ConversationView, summaries: Iterable[SummaryRange]) -> bool:
    """Whether all messages after the newest summary were read."""
    return view.complete or (bool(view.messages) and view.messages[0].seq <= last_covered(summaries))


def counted_below(view: ConversationView, summaries: Sequence[SummaryRange]) -> int:
    """The log position before which messages are counted, not read; 0 where all of them were read.

    It moves with summaries only, as long as the whole tail is read: what is counted once is right until then.
    """
    if view.complete or not view.messages:
        return 0
    return last_covered(summaries) + 1 if has_whole_tail(view, summaries) else view.messages[0].seq


def count_edges(summaries: Iterable[SummaryRange]) -> tuple[int, ...]:
    """Log positions at which messages begin to be covered by other summaries."""
    return tuple(sorted({edge for each in summaries for edge in (each.from_seq, each.to_seq + 1)}))


@dataclass(frozen=True, slots=True)
class ConversationExtent:
    """All visible messages of a conversation, and the summaries that cover them.

    Attributes:
        summaries: all that count, shown or not.
        read: log positions of the messages that stand for themselves, by event id.
        counts: the messages before those.
        located: of the counted messages those that may be shown, their log positions by event id.
        wordless: messages without words or tools: there is nothing of them to show.
    """

    summaries: Sequence[SummaryRange]
    read: Mapping[str, int]
    counts: Sequence[MessageCount]
    located: Mapping[str, int]
    wordless: AbstractSet[str] = frozenset()

    @classmethod
    def of(
        cls,
        view: ConversationView,
        summaries: Sequence[SummaryRange],
        counts: Sequence[MessageCount],
        found: Mapping[str, int],
    ) -> Self:
        """Put together what was read.

        Args:
            view: the newest messages.
            summaries: all that count.
            counts: of the messages before `counted_below`, by `count_edges`.
            found: messages of the same conversation that a search found, log positions by event id.
        """
        below = counted_below(view, summaries)
        rows = {row.event_id: row.seq for row in view.messages}
        return cls(
            summaries,
            {event_id: seq for event_id, seq in rows.items() if seq >= below},
            counts,
            {event_id: seq for event_id, seq in {**found, **rows}.items() if seq < below},
            frozenset(row.event_id for row in view.messages if is_wordless(row)),
        )

    def unread(self, rows: Iterable[StoredRow]) -> int:
        """The number of messages that no summary covers and that are not among these rows."""
        uncovered = sum(count for seq, count in self.counts if not is_covered(seq, self.summaries))
        return uncovered - sum(
            row.event_id in self.located and not is_covered(row.seq, self.summaries) for row in rows
        )

    def account(self, shown: AbstractSet[str], shown_summaries: Sequence[SummaryRange]) -> AccountedMessages:
        """Count the messages by what is shown of them: `shown` are event ids."""
        numbers: Counter[Outcome] = Counter()

        def unshown(seq: int) -> Outcome:
            if is_covered(seq, shown_summaries):
                return "summarised"
            return "summary left out" if is_covered(seq, self.summaries) else "left out"

        for event_id, seq in self.read.items():
            is_shown = event_id in shown or event_id in self.wordless
            numbers["shown" if is_shown else unshown(seq)] += 1
        for seq, count in self.counts:
            numbers[unshown(seq)] += count
        for event_id, seq in self.located.items():
            if event_id in shown or event_id in self.wordless:
                numbers[unshown(seq)] -= 1
                numbers["shown"] += 1
        return AccountedMessages(
            numbers["shown"], numbers["summarised"], numbers["summary left out"], numbers["left out"]
        )


def is_wordless(row: StoredRow) -> bool:
    """Whether a message has nothing to show."""
    return not row.content.strip() and not row.tool_calls
