"""What a conversation is due, and what becomes of a model's answer. No I/O, no clock, no randomness."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from consumers.compact.prompt import PROMPT_VERSION
from contracts.identity import derived_id
from contracts.memory import Lineage, SummaryMergedV1, SummaryWrittenV1
from contracts.model_settings import Compaction
from contracts.subjects import memory_subject
from infra.broker.appending import LogEvent
from infra.database.summaries import StoredSummary
from infra.database.uncovered import SpokenRow

EXTRACTOR: Final = "compact"
"""What the lineage of a summary calls it."""

MOST_WORDS, MOST_CHARACTERS = 100, 1000
"""Of a summary. Some models say more, however little they are asked for; not all languages part words."""

MOST_MERGED: Final = 50
"""Summaries of which one is made at once, where not more of them may be: a model reads only so much."""

Place = tuple[str, str, str]
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


Step = Write | Merge


def next_step(
    uncovered: Sequence[SpokenRow], summaries: Sequence[StoredSummary], settings: Compaction
) -> Step | None:
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


def summary(place: Place, step: Step, text: str, model: str) -> LogEvent:
    """The event of a step.

    Its id follows from where the step begins: whoever takes it, however often, and with whatever settings,
    the log has one summary of what comes next, and one in the place of others.

    Args:
        place: the conversation.
        step: what was done.
        text: what the model made of it, `cleaned`.
        model: the provider and its model, such as `openai/gpt-5-mini`.
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


_THOUGHT: Final = re.compile(
    # A model that thinks to the last token it has does not come to an end of it.
    r"<think(?:ing)?>.*?</think(?:ing)?>|\A.*</think(?:ing)?>|\A\s*<think(?:ing)?>.*",
    re.DOTALL | re.IGNORECASE,
)
_FENCE: Final = re.compile(r"\A```\w*\s*|\s*```\Z")
_LABEL: Final = re.compile(
    r"\A[*_#\s]*(?:summary|резюме|краткое содержание|итог)[*_\s]*:[*_\s]*", re.IGNORECASE
)
_QUOTED: Final = re.compile(r"\A(?:\"([^\"]*)\"|«([^«»]*)»|“([^“”]*)”)\Z")
_SENTENCE_END: Final = re.compile(r"[.!?…]+[\"'”»)\]]*(?=\s|\Z)|[。！？]")
_WORD: Final = re.compile(r"\S+")


def cleaned(text: str) -> str:
    """A model's answer as it is kept: on one line, without what stands around it, and not too long.

    Empty where nothing was said.
    """
    text = _LABEL.sub("", _FENCE.sub("", _THOUGHT.sub("", text).strip()))
    text = " ".join(text.split())
    if quoted := _QUOTED.match(text):
        text = next(part for part in quoted.groups() if part is not None).strip()
    return _shortened(text) if any(character.isalnum() for character in text) else ""


def _shortened(text: str) -> str:
    """The text, or where it is too long its first sentences."""
    words = [word.end() for word in _WORD.finditer(text)]
    room = min(MOST_CHARACTERS, words[MOST_WORDS - 1] if len(words) > MOST_WORDS else len(text))
    if len(text) <= room:
        return text
    ends = [end.end() for end in _SENTENCE_END.finditer(text) if end.end() <= room]
    if ends:
        return text[: ends[-1]]
    # One endless sentence: up to a word, where there are words.
    return text[: max((end for end in words if end <= room), default=room)].rstrip(" ,;:") + "…"
