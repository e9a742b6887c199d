"""Decision on the next summary of a conversation, and the event of the summary.

No I/O, no clock, no randomness.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from mnemon_consumers.compact.prompt import PROMPT_VERSION
from mnemon_contracts.events.memory import Lineage, SummaryMergedV1, SummaryWrittenV1
from mnemon_contracts.identity import derive_id
from mnemon_contracts.settings.language_models import Compaction
from mnemon_contracts.subjects import build_memory_subject
from mnemon_infra.broker.streams.log_writer import LogEvent
from mnemon_infra.database.memory.summaries import StoredSummary

EXTRACTOR: Final = "compact"
"""Name of this consumer in the lineage of a summary."""

MOST_MERGED: Final = 50
"""Maximum number of summaries that one request merges, because a model's input is limited. If the setting
`merge_above` is greater, the setting is the maximum."""

ConversationKey = tuple[str, str, str]
"""Tenant, user and conversation."""


@dataclass(frozen=True, slots=True)
class SummaryStep:
    """Step that writes a summary of the messages at the log positions `messages`."""

    messages: Sequence[int]

    @property
    def covers(self) -> tuple[int, int]:
        """Return the first and the last log position that the summary covers."""
        return self.messages[0], self.messages[-1]

    @property
    def name(self) -> str:
        """Return the key of this step, made from its first message; a repeated step has the same key."""
        return f"from {self.messages[0]}"


@dataclass(frozen=True, slots=True)
class MergeStep:
    """Step that merges summaries into one."""

    summaries: Sequence[StoredSummary]

    @property
    def covers(self) -> tuple[int, int]:
        """Return the first and the last log position that the merged summary covers."""
        return self.summaries[0].from_seq, max(each.to_seq for each in self.summaries)

    @property
    def name(self) -> str:
        """Return the key of this step, made from its first summary; a repeated step has the same key."""
        return f"instead of {self.summaries[0].id}"


CompactionStep = SummaryStep | MergeStep


def choose_next_step(
    uncovered: Sequence[int], summaries: Sequence[StoredSummary], settings: Compaction
) -> CompactionStep | None:
    """Return the step that is due in a conversation; None if no step is due.

    Summaries are merged before another summary is written, so that a conversation has at most `merge_above`
    summaries, unless the setting was lowered.

    Args:
        uncovered: log positions of the oldest messages that no summary covers, at most `after_messages` + 1.
        summaries: the live summaries, oldest first.
        settings: the tenant's settings for compaction.
    """
    is_due = len(uncovered) > settings.after_messages
    if len(summaries) + is_due > settings.merge_above and len(summaries) > 1:
        return MergeStep(tuple(summaries[: max(MOST_MERGED, settings.merge_above)]))
    return SummaryStep(tuple(uncovered[: settings.messages])) if is_due else None


def build_summary_event(place: ConversationKey, step: CompactionStep, text: str, model: str) -> LogEvent:
    """Return the event of a step.

    The first message or summary of the step determines the event's id. So only one summary that begins with
    this message, or replaces this summary, counts, even if several processes take the step under different
    settings.

    Args:
        place: the conversation.
        step: the step that was taken.
        text: the summary.
        model: the provider and model that wrote the summary, such as `openai/gpt-5-mini`; `offline/rules` if
            the tenant uses the offline model, or all answers of another model were rejected.
    """
    tenant, user, conversation = place
    summary_id = derive_id(*place, "summary", step.name)
    from_seq, to_seq = step.covers
    shared: dict[str, Any] = {
        "summary_id": summary_id,
        "conversation": conversation,
        "from_seq": from_seq,
        "to_seq": to_seq,
        "text": text,
        "lineage": Lineage(
            sources=tuple(step.messages) if isinstance(step, SummaryStep) else (),
            conversation=conversation,
            extractor=EXTRACTOR,
            prompt_version=PROMPT_VERSION,
            model=model,
        ),
    }
    event: SummaryWrittenV1 | SummaryMergedV1
    match step:
        case SummaryStep():
            name, event = "summary.written", SummaryWrittenV1(**shared)
        case MergeStep(summaries):
            merged = tuple(each.id for each in summaries)
            name, event = "summary.merged", SummaryMergedV1(**shared, merged=merged)
    return LogEvent(build_memory_subject(tenant, user, name), event.encode_body(), summary_id)
