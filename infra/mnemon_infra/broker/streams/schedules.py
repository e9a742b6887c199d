"""Schedules that the server keeps, so that no process has to run when a message is due."""

from datetime import datetime
from typing import Final

from nats.aio.client import Client

from mnemon_contracts.streams import WORK

SCHEDULE: Final = "Nats-Schedule"
TARGET: Final = "Nats-Schedule-Target"


async def schedule_every(connection: Client, subject: str, seconds: float, target: str) -> None:
    """Schedule an empty message to `target` every `seconds` seconds.

    A later schedule with the same `subject` replaces this one.
    """
    headers = {SCHEDULE: f"@every {seconds:g}s", TARGET: target}
    await connection.jetstream().publish(subject, b"", stream=WORK, headers=headers)


async def schedule_once(connection: Client, subject: str, at: datetime, target: str) -> None:
    """Schedule one empty message to `target` at the time `at`.

    A later schedule with the same `subject` replaces this one.
    """
    headers = {SCHEDULE: f"@at {at.isoformat(timespec='milliseconds')}", TARGET: target}
    await connection.jetstream().publish(subject, b"", stream=WORK, headers=headers)
