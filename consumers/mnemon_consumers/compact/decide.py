"""Decides which summary a conversation is due, and writes its event. No I/O, no clock, no randomness."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from mnemon_consumers.compact.prompt import PROMPT_VERSION
from mnemon_contracts.events.memory import Lineage, SummaryMergedV1, SummaryWrittenV1
from mnemon_contracts.identity import derived_id
from mnemon_contracts.settings.models import Compaction
from mnemon_contracts.subjects import memory_subject
from mnemon_infra.broker.streams.log_writer import LogEvent
from mnemon_infra.database.memory.summaries import StoredSummary
from mnemon_infra.database.messages.unsummarised import SpokenRow

EXTRACTOR: Final = "compact"
"""What the lineage of a summary calls it."""

MOST_MERGED: Final = 50
"""Summaries of which one is made at once, where not more of them may be: a model reads only so much."""

ConversationKey = tuple[str, str, str]
"""Tenant, user and conversation."""


@dataclass(frozen=True, slots=True)
class Write:
    """Messages are to become a summary."""

    messages: Sequence[SpokenRow]

    @property
    def covers(self) -> tuple[int, int]:
        return self.messages[0].seq, self.messages[-1].seq

    @property
    def name(self) -> str:
        """The same for every summary that could be written of what comes next."""
        return f"from {self.messages[0].seq}"


@dataclass(frozen=True, slots=True)
class Merge:
    """Summaries are to become one."""

    summaries: Sequence[StoredSummary]

    @property
    def covers(self) -> tuple[int, int]:
        return self.summaries[0].from_seq, max(each.to_seq for each in self.summaries)

    @property
    def name(self) -> str:
        """The same for every summary that could take the place of the first of these."""
        return f"instead of {self.summaries[0].id}"


CompactionStep = Write | Merge


def next_step(
    uncovered: Sequence[SpokenRow], summaries: Sequence[StoredSummary], settings: Compaction
) -> CompactionStep | None:
    """What a conversation is due now.

    Summaries make room before another comes: there are never more than `merge_above`.

    Args:
        uncovered: its oldest messages that no summary covers, one more than `after_messages` of them.
        summaries: those that count, oldest first.
        settings: of the tenant.
    """
    is_due = len(uncovered) > settings.after_messages
    if len(summaries) + is_due > settings.merge_above and len(summaries) > 1:
        return Merge(tuple(summaries[: max(MOST_MERGED, settings.merge_above)]))
    return Write(tuple(uncovered[: settings.messages])) if is_due else None


def summary(place: ConversationKey, step: CompactionStep, text: str, model: str) -> LogEvent:
    """The event of a step.

    Its id follows from where the step begins: whoever takes it, however often, and with whatever settings,
    the log has one summary of what comes next, and one in the place of others.

    Args:
        place: the conversation.
        step: what was done.
        text: the summary.
        model: the provider and its model, such as `openai/gpt-5-mini`; `offline/rules` where its answers were
            refused, and the rules wrote the summary.
    """
    tenant, user, conversation = place
    summary_id = derived_id(*place, "summary", step.name)
    from_seq, to_seq = step.covers
    sources = tuple(each.seq for each in step.messages) if isinstance(step, Write) else ()
    lineage = Lineage(
        sources=sources,
        conversation=conversation,
        extractor=EXTRACTOR,
        prompt_version=PROMPT_VERSION,
        model=model,
    )
    match step:
        case Write():
            written = SummaryWrittenV1(
                summary_id=summary_id,
                conversation=conversation,
                from_seq=from_seq,
                to_seq=to_seq,
                text=text,
                lineage=lineage,
            )
            return LogEvent(memory_subject(tenant, user, "summary.written"), written.body(), summary_id)
        case Merge(summaries):
            merged = SummaryMergedV1(
                summary_id=summary_id,
                conversation=conversation,
                merged=tuple(each.id for each in summaries),
                from_seq=from_seq,
                to_seq=to_seq,
                text=text,
                lineage=lineage,
            )
            return LogEvent(memory_subject(tenant, user, "summary.merged"), merged.body(), summary_id)
