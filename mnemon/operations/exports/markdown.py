"""A user's facts, profile fields and tasks as Markdown that `mnemon import markdown` takes."""

import json
import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from mnemon.operations.markdown_lines import format_fact, format_field, format_owner, format_task
from mnemon_contracts.events.fact_comparison import FactMergedV1
from mnemon_contracts.events.memory import Fact, FactSavedV1, FactUpdatedV1, TaskAddedV1, TaskDoneV1, Tier
from mnemon_contracts.registry import EVENTS
from mnemon_contracts.subjects import Owner
from mnemon_infra.database.memory.export import ExportedMemory, KeptMemory

_HEADINGS: Final[dict[Tier, str]] = {
    "profile": "Profile memory",
    "working": "Working memory",
    "archive": "Archive",
}


@dataclass(slots=True)
class _UserMemory:
    """Current facts, tasks and profile fields (`data`) of a user; `done` has the ids of completed tasks."""

    facts: dict[str, Fact] = field(default_factory=dict)
    tasks: dict[str, TaskAddedV1] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    data: dict[str, Any] = field(default_factory=dict)

    def add_memory(self, kept: KeptMemory) -> None:
        event = EVENTS[kept.event].latest.model_validate_json(json.dumps(kept.body))
        match event:
            case FactSavedV1() | FactUpdatedV1() | FactMergedV1():
                self.facts[event.fact_id] = event.fact
            case TaskAddedV1():
                self.tasks[event.task_id] = event
            case TaskDoneV1():
                self.done.add(event.task_id)


async def generate_lines(memory: ExportedMemory, owner: Owner) -> AsyncGenerator[str, None]:
    """Yield the lines of a Markdown file with a user's facts, profile fields and tasks.

    Expired facts are left out. If the user has no fact, field or task, there are no lines.
    """
    known = _UserMemory()
    async with aclosing(memory.stream_memories()) as memories:
        async for kept in memories:
            known.add_memory(kept)
    known.data = {each.name: each.value async for each in memory.stream_profile_fields()}
    sections = [
        *((heading, _format_facts(known, tier)) for tier, heading in _HEADINGS.items()),
        ("User data", [format_field(*each) for each in sorted(known.data.items())]),
        ("Tasks", _format_tasks(known)),
    ]
    if not any(written for _, written in sections):
        return
    yield f"# {' '.join(' / '.join(owner).split())}"
    yield ""
    yield format_owner(*owner)
    yield ""
    for heading, written in sections:
        if written:
            yield f"## {heading}"
            yield ""
            for line in written:
                yield line
            yield ""


def _format_facts(known: _UserMemory, tier: Tier) -> list[str]:
    now = datetime.now(UTC)
    facts = [
        (fact_id, fact)
        for fact_id, fact in known.facts.items()
        if fact.tier == tier and (fact.expires_at is None or fact.expires_at > now)
    ]
    return [format_fact(*each) for each in sorted(facts, key=lambda each: _build_sort_key(each[0]))]


def _format_tasks(known: _UserMemory) -> list[str]:
    return [
        format_task(each.task_id, each.text, each.due_at, done=each.task_id in known.done)
        for each in known.tasks.values()
    ]


def _build_sort_key(fact_id: str) -> tuple[int, str]:
    """Return a key that sorts ids by the number at their end, such as 7 of `pf_007`; 0 without a number."""
    number = re.search(r"\d+\Z", fact_id)
    return int(number[0]) if number else 0, fact_id
