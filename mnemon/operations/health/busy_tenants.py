"""Detection of tenants whose bots publish more events per second than the settings name."""

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from nats.aio.client import Client

from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import InvalidSubject, parse_subject
from mnemon_infra.broker.streams.applied_position import read_log_end
from mnemon_infra.broker.streams.log_reader import parse_delivery, read_stored_messages
from mnemon_infra.settings.store import read_settings

EXAMINED_POSITIONS: Final = 1000
"""Number of newest log positions that are examined for the rate of each tenant."""

MIN_SECONDS: Final = 1.0
"""Minimum length of the period over which a rate is computed, in seconds."""


async def measure_event_rates(connection: Client) -> dict[str, float]:
    """Return the chat events per second of each tenant, over the newest `EXAMINED_POSITIONS` positions.

    Events that a tenant move copied into this log are not counted.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    after = max(0, await read_log_end(connection.jetstream()) - EXAMINED_POSITIONS)
    counts: Counter[str] = Counter()
    first = now = datetime.now(UTC).timestamp()
    async for page in read_stored_messages(connection, LOG, "chat.>", after):
        for delivery in map(parse_delivery, page):
            if delivery.is_moved:
                continue
            try:
                counts[parse_subject(delivery.subject).tenant] += 1
            except InvalidSubject:
                continue
            first = min(first, delivery.stored_at)
    seconds = max(MIN_SECONDS, now - first)
    return {tenant: count / seconds for tenant, count in counts.items()}


async def find_exceeded_rates(connection: Client, busy: Mapping[str, float]) -> dict[str, float]:
    """Return the setting `rates.events_per_second` of each tenant whose bots exceed it.

    `busy` is the rate of each tenant, in events per second.

    Raises:
        nats.errors.Error: the server does not answer.
        mnemon_infra.settings.bucket.SettingsNotProvisioned: the bucket of settings does not exist.
    """
    bounds = {tenant: (await read_settings(connection, tenant)).rates.events_per_second for tenant in busy}
    return {tenant: most for tenant, most in bounds.items() if most is not None and busy[tenant] > most}


def warn_of_busy_tenants(busy: Mapping[str, float], bounds: Mapping[str, float]) -> Iterator[str]:
    """Yield a warning for each tenant in `bounds`.

    `busy` is the measured rate of each tenant, `bounds` the setting that the rate exceeds; both in events per
    second.
    """
    for tenant, most in bounds.items():
        yield (
            f"tenant {tenant} publishes {busy[tenant]:,.0f} events per second, above its rate of {most:g} "
            "(rates.events_per_second). All are kept, and events of other tenants wait behind them. Slow "
            "down its bots, or raise the setting"
        )
