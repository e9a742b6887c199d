"""Presets: settings that belong together, such as those of a Telegram bot or of a personal bot."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from mnemon_contracts.base import InvalidBody


class Preset(NamedTuple):
    """A preset: its title, and its values by the full names of settings."""

    title: str
    values: Mapping[str, Any]


PRESETS: Final[Mapping[str, Preset]] = MappingProxyType(
    {
        "000": Preset(
            "Telegram bot: the last 30 messages with Moscow time, no extraction and no summaries",
            {
                "recent_messages": 30,
                "time_stamps.enabled": True,
                "time_stamps.template": "[Текущее время: {time}] {text}",
                "time_stamps.zone": "Europe/Moscow",
                "context.language": "en",
                "context.fact_types": False,
                "context.recent_limit": 30,
                "context.conversation_hits": 0,
                "context.budget": 8_000,
                "context.sections.recent": 8_000,
                "context.sections.relevant": 0,
                "extraction.enabled": False,
                "compaction.enabled": False,
            },
        ),
        "001": Preset(
            "Facts from daily batches, without default expiry or decay; at most five hits a search",
            {
                "context.budget": 4_096,
                "context.sections.relevant": 500,
                "context.recent_limit": None,
                "context.fact_types": True,
                "context.language": "auto",
                "extraction.enabled": True,
                "extraction.mode": "batch",
                "extraction.interval_hours": 24,
                "dedupe.update_threshold": 0.85,
                "dedupe.duplicate_threshold": 0.95,
                "dedupe.require_similarity": True,
                "limits.per_user": 1_000,
                "limits.working_days": None,
                "retrieval.limit": 5,
                "retrieval.threshold": 0.6,
                "retrieval.decay": False,
            },
        ),
        "002": Preset(
            "Ten messages, three summaries and facts in a context of at most 1,300 tokens",
            {
                "recent_messages": 10,
                "time_stamps.enabled": False,
                "context.budget": 1_300,
                "context.sections.summaries": 600,
                "context.summaries": 3,
                "context.recent_limit": None,
                "context.fact_types": False,
                "context.language": "en",
                "compaction.enabled": True,
                "compaction.after_messages": 16,
                "compaction.messages": 6,
                "compaction.merge_above": 6,
            },
        ),
        "003": Preset(
            "Summary, user data, ten messages, and facts and earlier messages found for the query",
            {
                "recent_messages": 10,
                "context.sections.user_data": 300,
                "context.sections.relevant": 500,
                "context.sections.conversation": 500,
                "context.sections.documents": 500,
                "context.conversation_hits": 3,
                "context.recent_limit": None,
                "context.budget": 2_500,
                "context.fact_types": False,
                "context.language": "en",
            },
        ),
        "004": Preset(
            "Personal bot: facts in three tiers, with limits and decay",
            {
                "policy.min_length": 12,
                "policy.max_length": 240,
                "dedupe.duplicate_threshold": 0.9,
                "dedupe.require_similarity": False,
                "limits.per_user": 500,
                "limits.profile": 50,
                "limits.working": 50,
                "context.budget": 2_600,
                "context.key_facts": "high",
                "context.recent_limit": None,
                "context.sections.facts": 400,
                "context.sections.relevant": 1_000,
                "context.characters.facts": 800,
                "context.characters.relevant": 2_000,
                "context.fact_types": False,
                "context.language": "auto",
                "retrieval.limit": 5,
                "retrieval.decay": True,
                "retrieval.decay_days": 60,
            },
        ),
    }
)
"""Presets by name. No preset changes the embedding model, because a change needs new vectors."""


def find_preset(name: str) -> Preset:
    """Return a preset by its name.

    Raises:
        InvalidBody: no preset has this name.
    """
    if name not in PRESETS:
        raise InvalidBody(name, f"is not a preset; choose from: {', '.join(PRESETS)}")
    return PRESETS[name]
