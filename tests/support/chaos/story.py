"""Random actions of many users; the same seed gives the same actions, whichever processes are killed."""

import asyncio
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Literal

from mnemon_producers.client import MemoryClient
from mnemon_producers.errors import AskFailed

FACTS = (
    "Works as a carpenter in Lyon",
    "Is allergic to peanuts",
    "Plays the cello on Sundays",
    "Has two younger brothers",
    "Was born in Helsinki in 1987",
    "Never drinks coffee after noon",
    "Drives an old green tractor",
    "Collects stamps from Iceland",
    "Wants to learn Portuguese",
    "Is afraid of high bridges",
)
"""Facts of which no two say the same, so that no fact replaces another."""

STATEMENTS = (
    "My sister lives in Leeds.",
    "My favourite colour is green.",
    "I can't stand loud music.",
    "I work as a nurse at St. Thomas hospital.",
)
"""Messages in which the rules of the provider `offline` find a fact."""

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)

Deed = Literal["say", "clear", "new", "discard", "save"]


@dataclass(frozen=True, slots=True)
class Step:
    """One action of a user.

    Attributes:
        number: number of the action among those of the user, from 0.
        text: text of a message or a fact.
    """

    deed: Deed
    number: int
    text: str = ""


@dataclass
class Story:
    """Actions of all users, each user's in order.

    A third of the users talk, clear conversations, and start new ones, with or without `discard_previous`. A
    third also save facts. A third only talk, so that their facts and summaries do not depend on the times at
    which their messages are read.

    Attributes:
        seed: seed of the random choice; the same seed gives the same actions.
        users: number of users.
        steps: number of actions of each user.
        done: number of completed actions of all users.
        allowed: number of actions that users may begin, in total.
        last_seq: the highest log position that an action has returned.
    """

    seed: int
    users: int
    steps: int
    done: int = 0
    allowed: int = 0
    last_seq: int = 0
    _begun: int = 0
    _change: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def length(self) -> int:
        return self.users * self.steps

    @property
    def names(self) -> list[str]:
        return [f"u{number}" for number in range(self.users)]

    def of(self, user: int) -> Iterator[Step]:
        """Yield the actions of the user with this number."""
        chance = random.Random(f"{self.seed}:{user}")
        facts = chance.sample(FACTS, len(FACTS))
        statements = chance.sample(STATEMENTS, len(STATEMENTS))
        for number in range(self.steps):
            match user % 3:
                case 0:
                    deed: Deed = chance.choices(("say", "clear", "new", "discard"), (12, 1, 1, 1))[0]
                    yield Step(deed, number, f"step {number} of {self.seed}")
                case 1 if number % 4 == 3 and facts:
                    yield Step("save", number, facts.pop())
                case 2 if number % 8 == 5 and statements:
                    yield Step("say", number, statements.pop())
                case _:
                    yield Step("say", number, f"step {number} of {self.seed}")

    async def told(self, memory: MemoryClient) -> None:
        """Perform the actions of all users; each action waits until `allow` permits it."""
        async with asyncio.TaskGroup() as group:
            for user in range(self.users):
                group.create_task(self._lived(memory, user))

    async def allow(self, steps: int) -> None:
        """Permit users to begin `steps` actions, in total since the start."""
        async with self._change:
            self.allowed = steps
            self._change.notify_all()

    async def has_done(self, steps: int) -> None:
        """Wait until `steps` actions are completed, in total."""
        async with self._change:
            await self._change.wait_for(lambda: self.done >= steps)

    async def _lived(self, memory: MemoryClient, user: int) -> None:
        for step in self.of(user):
            async with self._change:
                await self._change.wait_for(lambda: self._begun < self.allowed)
                self._begun += 1
            seq = await _do(memory, f"u{user}", step)
            async with self._change:
                self.done += 1
                self.last_seq = max(self.last_seq, seq)
                self._change.notify_all()


async def _do(memory: MemoryClient, user: str, step: Step) -> int:
    """Perform an action, and return its log position; 0 if a reply has none."""
    event_id = f"{user}-{step.number}"
    match step.deed:
        case "say":
            at = BEGINNING + timedelta(minutes=step.number)
            return await memory.publish(user, "user", step.text, sent_at=at, id=event_id)
        case "clear":
            return await memory.clear(user, id=event_id)
        case "new" | "discard":
            discards = step.deed == "discard"
            return await memory.start(user, f"c{step.number}", discard_previous=discards, id=event_id)
        case "save":
            return await _saved(memory, user, step.text)


async def _saved(memory: MemoryClient, user: str, text: str) -> int:
    """Save a fact, and return `seen_seq` of the reply; repeat the request while its error is retryable."""
    while True:
        try:
            return (await memory.save(user, text)).seen_seq or 0
        except AskFailed as failed:
            if not failed.error.retryable:
                raise
            await asyncio.sleep(0.2)
