"""Schedules that the server keeps: no process has to be there when one is due."""

from datetime import datetime
from typing import Final

from nats.aio.client import Client

from mnemon_contracts.streams import WORK

SCHEDULE: Final = "Nats-Schedule"
TARGET: Final = "Nats-Schedule-Target"


async def every(connection: Client, subject: str, seconds: float, target: str) -> None:
    """Have an empty message sent to `target` every so often. The same `subject` again replaces the schedule.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    headers = {SCHEDULE: f"@every {seconds:g}s", TARGET: target}
    await connection.jetstream().publish(subject, b"", stream=WORK, headers=headers)


async def once(connection: Client, subject: str, at: datetime, target: str) -> None:
    """Have an empty message sent to `target` at a time. The same `subject` again replaces the schedule.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    headers = {SCHEDULE: f"@at {at.isoformat(timespec='milliseconds')}", TARGET: target}
    await connection.jetstream().publish(subject, b"", stream=WORK, headers=headers)
