"""Coverage: counts every visible message of a conversation as shown, summarised or left out."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol, Self

from mnemon_contracts.verbs.ask import ContextCoverage
from mnemon_infra.database.memory.user_memory import ConversationView, StoredRow
from mnemon_infra.database.messages.counts import MessageCount

MessageCoverage = Literal["shown", "summarised", "summary left out", "left out"]


class SummaryRange(Protocol):
    """Log positions that a summary covers."""

    @property
    def from_seq(self) -> int: ...

    @property
    def to_seq(self) -> int: ...


class AccountedMessages(NamedTuple):
    """Counts of a conversation's messages by how a context shows them. Each message is in exactly one count.

    Attributes:
        shown: messages that are shown, whole or cut, or that have nothing to show. A message with words does
            not count if only its tools are named.
        summarised: messages that are not shown, and that a shown summary covers.
        in_summaries_left_out: messages that are not shown, and covered only by summaries left out.
        left_out: messages that are neither shown nor covered.
    """

    shown: int
    summarised: int
    in_summaries_left_out: int
    left_out: int

    @property
    def coverage(self) -> ContextCoverage:
        """Return the counts as a reply has them: one number for all messages that are left out."""
        return ContextCoverage(
            shown=self.shown,
            summarised=self.summarised,
            left_out=self.in_summaries_left_out + self.left_out,
        )


def is_covered(seq: int, summaries: Iterable[SummaryRange]) -> bool:
    """Return whether one of the summaries covers the message at a log position."""
    return any(summary.from_seq <= seq <= summary.to_seq for summary in summaries)


def find_last_covered(summaries: Iterable[SummaryRange]) -> int:
    """Return the last log position that a summary covers; 0 without a summary."""
    return max((summary.to_seq for summary in summaries), default=0)


def has_all_unsummarised(view: ConversationView, summaries: Iterable[SummaryRange]) -> bool:
    """Return whether the view has all messages after the newest summary."""
    return view.is_whole or (bool(view.messages) and view.messages[0].seq <= find_last_covered(summaries))


class CountedMessages(NamedTuple):
    """Counts of the messages of a conversation before a log position, so that they need not be read.

    A view of the newest messages may have some of these messages too.

    Attributes:
        below: the log position; 0 if the view has all messages, so that none are counted.
        edges: ascending log positions at which a new count begins, see `find_count_edges`.
        counts: the numbers of messages before, between and after the edges, oldest first, without counts
            of 0.
    """

    below: int = 0
    edges: tuple[int, ...] = ()
    counts: Sequence[MessageCount] = ()

    def is_usable(self, view: ConversationView, edges: Iterable[int]) -> bool:
        """Return whether the view has all messages from `below` on, and no summary covers part of a count.

        `edges` are the positions at which the summaries begin and end, see `find_count_edges`.
        """
        return bool(view.messages) and (
            view.messages[0].seq <= self.below
            and all(edge in self.edges for edge in edges if edge < self.below)
        )


def find_count_edges(summaries: Iterable[SummaryRange]) -> tuple[int, ...]:
    """Return the log positions at which the set of covering summaries changes."""
    return tuple(sorted({edge for each in summaries for edge in (each.from_seq, each.to_seq + 1)}))


@dataclass(frozen=True, slots=True)
class ConversationExtent:
    """All visible messages of a conversation, and the summaries that cover them.

    Attributes:
        summaries: the newest live summaries, shown or not.
        messages: log positions of the messages that were read and not counted, by event id.
        counts: counts of older messages, see `CountedMessages`.
        counted_positions: counted messages that may be shown: log positions by event id.
        wordless: messages without words or tools, which cannot be shown.
    """

    summaries: Sequence[SummaryRange]
    messages: Mapping[str, int]
    counts: Sequence[MessageCount]
    counted_positions: Mapping[str, int]
    wordless: AbstractSet[str] = frozenset()

    @classmethod
    def combine(
        cls,
        view: ConversationView,
        summaries: Sequence[SummaryRange],
        counted: CountedMessages,
        found: Mapping[str, int],
    ) -> Self:
        """Combine the view, the summaries and the counts into the extent of a conversation.

        Args:
            view: the newest messages.
            summaries: the newest live summaries.
            counted: counts of older messages; some messages of the view may be among them.
            found: messages of the same conversation that a search found: log positions by event id.
        """
        below = counted.below
        rows = {row.event_id: row.seq for row in view.messages}
        return cls(
            summaries,
            {event_id: seq for event_id, seq in rows.items() if seq >= below},
            counted.counts,
            {event_id: seq for event_id, seq in {**found, **rows}.items() if seq < below},
            frozenset(row.event_id for row in view.messages if is_wordless(row)),
        )

    def count_unread(self, rows: Iterable[StoredRow]) -> int:
        """Return the number of messages in `counts` that no summary covers and that `rows` lacks."""
        uncovered = sum(count for seq, count in self.counts if not is_covered(seq, self.summaries))
        return uncovered - sum(
            row.event_id in self.counted_positions and not is_covered(row.seq, self.summaries) for row in rows
        )

    def count_messages(
        self, shown_ids: AbstractSet[str], shown_summaries: Sequence[SummaryRange]
    ) -> AccountedMessages:
        """Count the messages by how they are shown; `shown_ids` has the event ids of shown messages."""
        numbers: Counter[MessageCoverage] = Counter()

        def classify_unshown(seq: int) -> MessageCoverage:
            if is_covered(seq, shown_summaries):
                return "summarised"
            return "summary left out" if is_covered(seq, self.summaries) else "left out"

        for event_id, seq in self.messages.items():
            is_shown = event_id in shown_ids or event_id in self.wordless
            numbers["shown" if is_shown else classify_unshown(seq)] += 1
        for seq, count in self.counts:
            numbers[classify_unshown(seq)] += count
        for event_id, seq in self.counted_positions.items():
            if event_id in shown_ids or event_id in self.wordless:
                numbers[classify_unshown(seq)] -= 1
                numbers["shown"] += 1
        return AccountedMessages(
            numbers["shown"], numbers["summarised"], numbers["summary left out"], numbers["left out"]
        )


def is_wordless(row: StoredRow) -> bool:
    """Return whether a message has neither words nor tools to show."""
    return not row.content.strip() and not row.tool_calls
