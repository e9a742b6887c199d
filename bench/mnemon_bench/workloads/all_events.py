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
class _User:
    """Ids of a user's facts, tasks, documents and summaries, for later events that refer to them."""

    name: str
    facts: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)
    summaries: list[str] = field(default_factory=list)


def generate_events(seed: int = 0, users: int = USERS) -> Iterator[LogEvent]:
    """Yield events without end; about 70 % are messages, and 0.4 % cannot be decoded."""
    maker = _Maker(seed, users)
    while True:
        if event := maker.next():
            yield event


async def fill_log(
    connection: Client, number: int, seed: int = 0, users: int = USERS, first: int = 0
) -> None:
    """Append `number` generated events to the log; skip the `first` events, which the log has already."""
    wanted = islice(generate_events(seed, users), first, first + number)
    while page := list(islice(wanted, BATCH)):
        await append_events(connection, page)


class _Maker:
    def __init__(self, seed: int, users: int) -> None:
        self._chance = random.Random(seed)
        self._users = [_User(f"u{number}") for number in range(users)]
        self._number = 0
        self._seed = seed
        kinds: list[tuple[int, Callable[[_User], LogEvent | None]]] = [
            (700, self._message),
            (10, self._started),
            (6, self._cleared),
            (20, self._profile),
            (60, self._fact),
            (25, self._changed_fact),
            (12, self._ended_fact),
            (15, self._task),
            (12, self._changed_task),
            (6, self._document),
            (2, self._removed_document),
            (20, self._summary),
            (8, self._merged),
            (40, self._batch),
            (20, self._called),
            (20, self._answered),
            (4, self._unreadable),
        ]
        self._kinds = [make for _, make in kinds]
        self._weights = [weight for weight, _ in kinds]

    def next(self) -> LogEvent | None:
        """Return the next event; None if it would end or change an item that the user does not have."""
        self._number += 1
        (make,) = self._chance.choices(self._kinds, self._weights)
        return make(self._chance.choice(self._users))

    def _text(self) -> str:
        return " ".join([str(self._number), *self._chance.choices(_WORDS, k=12)])

    def _event(self, subject: str, body: dict[str, Any]) -> LogEvent:
        return LogEvent(
            subject, json.dumps(body, ensure_ascii=False).encode(), f"{self._seed}-{self._number}"
        )

    def _chat(self, user: _User, name: str, /, **body: Any) -> LogEvent:
        conversation = self._chance.choice([None, None, None, "c1", "c2"])
        return self._event(build_chat_subject(TENANT, user.name, conversation, name), body)

    def _memory(self, user: _User, name: str, /, **body: Any) -> LogEvent:
        return self._event(build_memory_subject(TENANT, user.name, name), body)

    def _covered(self) -> dict[str, Any]:
        return {"conversation": "c1", "from_seq": max(1, self._number - 20), "to_seq": self._number}

    def _message(self, user: _User) -> LogEvent:
        fields: dict[str, Any] = {}
        if self._number % 7 == 0:
            fields = {
                "name": "Ann",
                "metadata": {"n": self._number, "price": 1.5},
                "task_id": f"t{self._number % 9}",
            }
        role = self._chance.choice(["user", "assistant"])
        return self._chat(user, "message", role=role, content=self._text(), **fields)

    def _started(self, user: _User) -> LogEvent:
        return self._chat(user, "started", discard_previous=self._number % 3 == 0)

    def _cleared(self, user: _User) -> LogEvent:
        return self._chat(user, "cleared")

    def _profile(self, user: _User) -> LogEvent:
        return self._memory(
            user, "profile.set", fields={self._chance.choice("abc"): self._chance.choice([1, None])}
        )

    def _fact(self, user: _User) -> LogEvent:
        user.facts.append(f"f{self._number}")
        return self._memory(
            user,
            "fact.saved",
            fact_id=user.facts[-1],
            fact={"text": self._text()},
            decision={"proposal_id": "p"},
        )

    def _changed_fact(self, user: _User) -> LogEvent | None:
        if not user.facts:
            return self._memory(user, "fact.rejected", proposal_id="p", reason="too_short")
        fact = self._chance.choice(user.facts)
        if self._number % 3 == 0:
            return self._memory(user, "fact.confirmed", fact_id=fact, decision={"proposal_id": "p"})
        if self._number % 7 == 0:
            compared = {"version": "v", "other_id": self._chance.choice(user.facts), "other_version": "o"}
            return self._memory(user, "fact.compared", fact_id=fact, relation="different", **compared)
        texts = {"fact": {"text": self._text()}, "former": {"text": "as it was"}}
        if self._number % 5 == 0:
            merged = {"merged_id": "m", "relation": "same", "compared_id": "c"}
            return self._memory(user, "fact.merged", fact_id=fact, **merged, **texts)
        return self._memory(user, "fact.updated", fact_id=fact, **texts)

    def _ended_fact(self, user: _User) -> LogEvent | None:
        if not user.facts:
            return None
        fact = user.facts.pop(self._chance.randrange(len(user.facts)))
        endings: list[tuple[str, dict[str, Any]]] = [
            ("fact.forgotten", {}),
            ("fact.expired", {"expires_at": "2026-01-01T00:00:00Z"}),
            ("fact.evicted", {"tier": "archive", "limit": 10}),
        ]
        name, body = self._chance.choice(endings)
        return self._memory(user, name, fact_id=fact, **body)

    def _task(self, user: _User) -> LogEvent:
        user.tasks.append(f"t{self._number}")
        return self._memory(user, "task.added", task_id=user.tasks[-1], text=self._text())

    def _changed_task(self, user: _User) -> LogEvent | None:
        if not user.tasks:
            return None
        if self._number % 2:
            return self._memory(user, "task.done", task_id=user.tasks[-1])
        return self._memory(user, "task.removed", task_id=user.tasks.pop())

    def _document(self, user: _User) -> LogEvent:
        user.documents.append(f"d{self._number}")
        return self._memory(
            user, "document.added", document_id=user.documents[-1], text=self._text() * 20, title="A title"
        )

    def _removed_document(self, user: _User) -> LogEvent | None:
        return (
            self._memory(user, "document.removed", document_id=user.documents.pop())
            if user.documents
            else None
        )

    def _summary(self, user: _User) -> LogEvent:
        user.summaries.append(f"s{self._number}")
        return self._memory(
            user, "summary.written", summary_id=user.summaries[-1], text=self._text(), **self._covered()
        )

    def _merged(self, user: _User) -> LogEvent | None:
        if len(user.summaries) < 2:
            return None
        merged, user.summaries = user.summaries, [f"s{self._number}"]
        return self._memory(
            user,
            "summary.merged",
            summary_id=user.summaries[0],
            merged=merged,
            text=self._text(),
            **self._covered(),
        )

    def _batch(self, user: _User) -> LogEvent:
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
        return self._memory(user, name, batch_id=f"b{batch}", **body)

    def _called(self, user: _User) -> LogEvent:
        body = {"provider": "openai", "model": "m", "purpose": "extract", "tokens": {"input": 9, "output": 2}}
        return self._memory(user, "model.called", usd=0.001 * (self._number % 5), **body)

    def _answered(self, user: _User) -> LogEvent:
        outcome = self._chance.choice(["proposed", "nothing", "dead"])
        return self._memory(user, "window.answered", outcome=outcome, **self._covered())

    def _unreadable(self, user: _User) -> LogEvent:
        return self._chat(user, "message", role="nobody", content=1)
