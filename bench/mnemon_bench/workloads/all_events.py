"""Generated events of most kinds, in realistic proportions; the same seed gives the same events.

There are no proposed facts and no erasures.
"""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from nats.aio.client import Client

from mnemon_contracts.subjects import build_chat_subject, build_memory_subject
from mnemon_infra.broker.streams.log_writer import BATCH, LogEvent, append_events

TENANT: Final = "bench"
USERS: Final = 1000

_WORDS: Final = ("about", "the", "weather,", "die", "Kinder,", "рецепт,", "поезд", "at", "seven", "…")


@dataclass(slots=True)
class _GeneratedUser:
    """Ids of a user's facts, tasks, documents and summaries, for later events that refer to them."""

    name: str
    facts: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)
    summaries: list[str] = field(default_factory=list)


def generate_events(seed: int = 0, users: int = USERS) -> Iterator[LogEvent]:
    """Yield events without end; about 70 % are messages, and 0.4 % cannot be decoded."""
    maker = _EventGenerator(seed, users)
    while True:
        if event := maker.generate_event():
            yield event


async def fill_log(
    connection: Client, number: int, seed: int = 0, users: int = USERS, first: int = 0
) -> None:
    """Append `number` generated events, without the first `first` events, which the log has already."""
    wanted = islice(generate_events(seed, users), first, first + number)
    while page := list(islice(wanted, BATCH)):
        await append_events(connection, page)


class _EventGenerator:
    def __init__(self, seed: int, users: int) -> None:
        self._chance = random.Random(seed)
        self._users = [_GeneratedUser(f"u{number}") for number in range(users)]
        self._number = 0
        self._seed = seed
        kinds: list[tuple[int, Callable[[_GeneratedUser], LogEvent | None]]] = [
            (700, self._make_message),
            (10, self._make_start),
            (6, self._make_clearance),
            (20, self._make_profile),
            (60, self._make_fact),
            (25, self._change_fact),
            (12, self._end_fact),
            (15, self._make_task),
            (12, self._change_task),
            (6, self._make_document),
            (2, self._remove_document),
            (20, self._make_summary),
            (8, self._merge_summaries),
            (40, self._make_batch_event),
            (20, self._make_model_call),
            (20, self._answer_window),
            (4, self._make_unreadable_event),
        ]
        self._kinds = [make for _, make in kinds]
        self._weights = [weight for weight, _ in kinds]

    def generate_event(self) -> LogEvent | None:
        """Return the next event; None if the user lacks the items, such as a task, that it would change."""
        self._number += 1
        (make,) = self._chance.choices(self._kinds, self._weights)
        return make(self._chance.choice(self._users))

    def _make_text(self) -> str:
        return " ".join([str(self._number), *self._chance.choices(_WORDS, k=12)])

    def _make_event(self, subject: str, body: dict[str, Any]) -> LogEvent:
        return LogEvent(
            subject, json.dumps(body, ensure_ascii=False).encode(), f"{self._seed}-{self._number}"
        )

    def _make_chat_event(self, user: _GeneratedUser, name: str, /, **body: Any) -> LogEvent:
        conversation = self._chance.choice([None, None, None, "c1", "c2"])
        return self._make_event(build_chat_subject(TENANT, user.name, conversation, name), body)

    def _make_memory_event(self, user: _GeneratedUser, name: str, /, **body: Any) -> LogEvent:
        return self._make_event(build_memory_subject(TENANT, user.name, name), body)

    def _make_coverage(self) -> dict[str, Any]:
        return {"conversation": "c1", "from_seq": max(1, self._number - 20), "to_seq": self._number}

    def _make_message(self, user: _GeneratedUser) -> LogEvent:
        fields: dict[str, Any] = {}
        if self._number % 7 == 0:
            fields = {
                "name": "Ann",
                "metadata": {"n": self._number, "price": 1.5},
                "task_id": f"t{self._number % 9}",
            }
        role = self._chance.choice(["user", "assistant"])
        return self._make_chat_event(user, "message", role=role, content=self._make_text(), **fields)

    def _make_start(self, user: _GeneratedUser) -> LogEvent:
        return self._make_chat_event(user, "started", discard_previous=self._number % 3 == 0)

    def _make_clearance(self, user: _GeneratedUser) -> LogEvent:
        return self._make_chat_event(user, "cleared")

    def _make_profile(self, user: _GeneratedUser) -> LogEvent:
        return self._make_memory_event(
            user, "profile.set", fields={self._chance.choice("abc"): self._chance.choice([1, None])}
        )

    def _make_fact(self, user: _GeneratedUser) -> LogEvent:
        user.facts.append(f"f{self._number}")
        return self._make_memory_event(
            user,
            "fact.saved",
            fact_id=user.facts[-1],
            fact={"text": self._make_text()},
            decision={"proposal_id": "p"},
        )

    def _change_fact(self, user: _GeneratedUser) -> LogEvent | None:
        if not user.facts:
            return self._make_memory_event(user, "fact.rejected", proposal_id="p", reason="too_short")
        fact = self._chance.choice(user.facts)
        if self._number % 3 == 0:
            return self._make_memory_event(
                user, "fact.confirmed", fact_id=fact, decision={"proposal_id": "p"}
            )
        if self._number % 7 == 0:
            compared = {"version": "v", "other_id": self._chance.choice(user.facts), "other_version": "o"}
            return self._make_memory_event(
                user, "fact.compared", fact_id=fact, relation="different", **compared
            )
        texts = {"fact": {"text": self._make_text()}, "former": {"text": "as it was"}}
        if self._number % 5 == 0:
            merged = {"merged_id": "m", "relation": "same", "compared_id": "c"}
            return self._make_memory_event(user, "fact.merged", fact_id=fact, **merged, **texts)
        return self._make_memory_event(user, "fact.updated", fact_id=fact, **texts)

    def _end_fact(self, user: _GeneratedUser) -> LogEvent | None:
        if not user.facts:
            return None
        fact = user.facts.pop(self._chance.randrange(len(user.facts)))
        endings: list[tuple[str, dict[str, Any]]] = [
            ("fact.forgotten", {}),
            ("fact.expired", {"expires_at": "2026-01-01T00:00:00Z"}),
            ("fact.evicted", {"tier": "archive", "limit": 10}),
        ]
        name, body = self._chance.choice(endings)
        return self._make_memory_event(user, name, fact_id=fact, **body)

    def _make_task(self, user: _GeneratedUser) -> LogEvent:
        user.tasks.append(f"t{self._number}")
        return self._make_memory_event(user, "task.added", task_id=user.tasks[-1], text=self._make_text())

    def _change_task(self, user: _GeneratedUser) -> LogEvent | None:
        if not user.tasks:
            return None
        if self._number % 2:
            return self._make_memory_event(user, "task.done", task_id=user.tasks[-1])
        return self._make_memory_event(user, "task.removed", task_id=user.tasks.pop())

    def _make_document(self, user: _GeneratedUser) -> LogEvent:
        user.documents.append(f"d{self._number}")
        return self._make_memory_event(
            user,
            "document.added",
            document_id=user.documents[-1],
            text=self._make_text() * 20,
            title="A title",
        )

    def _remove_document(self, user: _GeneratedUser) -> LogEvent | None:
        return (
            self._make_memory_event(user, "document.removed", document_id=user.documents.pop())
            if user.documents
            else None
        )

    def _make_summary(self, user: _GeneratedUser) -> LogEvent:
        user.summaries.append(f"s{self._number}")
        return self._make_memory_event(
            user,
            "summary.written",
            summary_id=user.summaries[-1],
            text=self._make_text(),
            **self._make_coverage(),
        )

    def _merge_summaries(self, user: _GeneratedUser) -> LogEvent | None:
        if len(user.summaries) < 2:
            return None
        merged, user.summaries = user.summaries, [f"s{self._number}"]
        return self._make_memory_event(
            user,
            "summary.merged",
            summary_id=user.summaries[0],
            merged=merged,
            text=self._make_text(),
            **self._make_coverage(),
        )

    def _make_batch_event(self, user: _GeneratedUser) -> LogEvent:
        batch, part = divmod(self._number, 4)
        name, body = (
            (
                "batch.intended",
                {"provider": "offline", "model": "rules", "purpose": "extract", "windows": []},
            ),
            ("batch.submitted", {"provider_batch_id": f"p{batch}"}),
            ("batch.completed", {"answered": 1}),
            ("batch.failed", {"error": "no"}),
        )[part]
        return self._make_memory_event(user, name, batch_id=f"b{batch}", **body)

    def _make_model_call(self, user: _GeneratedUser) -> LogEvent:
        body = {"provider": "openai", "model": "m", "purpose": "extract", "tokens": {"input": 9, "output": 2}}
        return self._make_memory_event(user, "model.called", usd=0.001 * (self._number % 5), **body)

    def _answer_window(self, user: _GeneratedUser) -> LogEvent:
        outcome = self._chance.choice(["proposed", "nothing", "dead"])
        return self._make_memory_event(user, "window.answered", outcome=outcome, **self._make_coverage())

    def _make_unreadable_event(self, user: _GeneratedUser) -> LogEvent:
        return self._make_chat_event(user, "message", role="nobody", content=1)
