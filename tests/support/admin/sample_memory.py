"""Sample data for the admin page: a memory, a month of models' calls, batches and dead letters."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

import psycopg
from nats.aio.client import Client

from mnemon_contracts.events.chat import MessageV1, Role
from mnemon_contracts.events.memory import Tier
from mnemon_contracts.subjects import build_chat_subject
from mnemon_producers.client import MemoryClient

TENANT: Final = "harbour"
USER: Final = "anna"

SAID: Final[tuple[tuple[Role, str], ...]] = (
    ("user", "Morning! I found a flat near the river, but it has no balcony."),
    ("assistant", "A flat by the river sounds lovely. Is the balcony a must?"),
    ("user", "For the tomatoes it is. My sister Vera says I should keep looking."),
    ("assistant", "Then let us keep looking. How much time do you have?"),
    ("user", "Until March. Could you remind me to call the agency on Monday?"),
    ("assistant", "I will. Monday it is."),
)

FACTS: Final[tuple[tuple[str, Tier, int], ...]] = (
    ("Anna is allergic to peanuts.", "profile", 10),
    ("Anna's sister Vera lives in Riga.", "profile", 7),
    ("Anna is looking for a flat with a balcony.", "working", 6),
    ("Anna grows tomatoes.", "archive", 3),
)

REFUSED: Final = "My train to Riga leaves at seven on Friday."
"""Text of a message that the database refuses while the constraint `_REFUSAL` exists."""

_REFUSAL: Final = "of_the_admin_walk"


async def talk(memory: MemoryClient) -> None:
    """Publish the messages `SAID`, and save the facts `FACTS`."""
    for role, text in SAID:
        await memory.publish(USER, role, text)
    for fact, tier, importance in FACTS:
        await memory.save(USER, fact, tier=tier, importance=importance)


async def bury(connection: Client, database: psycopg.Connection[Any]) -> None:
    """Publish two messages that become dead letters: one is invalid, and the database refuses the other."""
    wrong, right = (build_chat_subject(TENANT, user, None, "message") for user in ("boris", USER))
    database.execute(
        f"ALTER TABLE messages ADD CONSTRAINT {_REFUSAL}"
        f" CHECK (content IS DISTINCT FROM '{REFUSED}') NOT VALID"
    )
    stream_context = connection.jetstream()
    await stream_context.publish(wrong, b'{"role": "human", "content": "Where did I park?"}')
    await stream_context.publish(right, MessageV1(role="user", content=REFUSED).encode_body())


def mend(database: psycopg.Connection[Any]) -> None:
    """Drop the constraint `_REFUSAL`, so that the database accepts the message `REFUSED`."""
    database.execute(f"ALTER TABLE messages DROP CONSTRAINT {_REFUSAL}")


def spend(database: psycopg.Connection[Any], now: datetime) -> None:
    """Insert rows of model calls of 30 days, and of six batches; events would all have today's date."""
    with database.cursor() as cursor:
        cursor.executemany(
            "INSERT INTO model_calls VALUES"
            " (%s, 'anna', %s, 0, %s, 'openai', 'gpt-4o-mini', %s, %s, %s, %s, %s, %s)",
            list(_calls(now)),
        )
        cursor.executemany(
            "INSERT INTO batches VALUES (%s, 'openai', 'gpt-4o-mini', 'extract', %s, %s, %s, %s, %s, %s, %s)",
            list(_batches(now)),
        )


def _calls(now: datetime) -> Iterator[tuple[object, ...]]:
    chance = Random(6)
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    for day in range(30):
        weekend = (today - timedelta(days=day)).weekday() >= 5
        for purpose, most in (("extract", 60_000), ("compact", 25_000)):
            read = chance.randint(most // 8, most // 3 if weekend else most)
            cached, written = read // 3, read // 12
            usd = (read * 0.15 + written * 0.6) / 1e6
            at = today - timedelta(days=day)
            yield TENANT, f"{purpose} {day}", at, purpose, purpose == "extract", read, cached, written, usd


def _batches(now: datetime) -> Iterator[tuple[object, ...]]:
    chance = Random(6)
    for number in range(6):
        made = now - timedelta(hours=24 * number + 5)
        over = made + timedelta(minutes=chance.randint(9, 180))
        error = "the provider refuses: insufficient quota" if number == 3 else None
        yield (
            *(
                f"harbour-{number}",
                "failed" if error else "completed",
                f"batch_68f{number}c1",
                40 - 6 * number,
            ),
            *(made, over, made + timedelta(hours=20), error),
        )
