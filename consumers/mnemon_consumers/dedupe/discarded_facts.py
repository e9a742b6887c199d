"""Facts that end when a new conversation discards the messages they were extracted from."""

from collections.abc import AsyncIterator, Collection
from datetime import UTC, datetime

from nats.aio.client import Client

from mnemon_consumers.dedupe.decide import DecisionEvent
from mnemon_contracts.events.chat import StartedV1
from mnemon_contracts.events.memory import FactForgottenV1
from mnemon_contracts.subjects import Owner, build_chat_filter
from mnemon_infra.database.facts.sources import find_facts_sourced_below
from mnemon_infra.database.projections.logged_events import stream_events
from mnemon_infra.settings.history import read_settings_at


async def forget_discarded_facts(
    connection: Client, owner: Owner, kept: Collection[str]
) -> list[DecisionEvent]:
    """Return the events that forget each kept fact whose sources are all discarded messages.

    `kept` has the ids of the kept facts.

    Only messages before the newest discard at which the setting `discard_facts` was on count as discarded.
    Turning the setting on later forgets nothing. A fact that was saved or confirmed by a tool, imported, or
    changed by the verb `update`, stays.

    Raises:
        nats.errors.Error: the log or the settings cannot be read now.
        mnemon_infra.settings.bucket.SettingsNotProvisioned: the bucket of settings does not exist.
    """
    tenant, _ = owner
    for position, at in sorted([each async for each in _find_discards(connection, owner)], reverse=True):
        then = await read_settings_at(connection, tenant, at)
        if then is not None and then.discard_facts:
            drawn = await find_facts_sourced_below(connection, owner, position)
            return [
                ("fact.forgotten", FactForgottenV1(id=f"discard:{position}:{fact_id}", fact_id=fact_id))
                for fact_id in sorted(drawn.intersection(kept))
            ]
    return []


async def _find_discards(connection: Client, owner: Owner) -> AsyncIterator[tuple[int, datetime]]:
    """Yield the log position and the time of each new conversation that discarded all messages before it."""
    async for logged in stream_events(connection, build_chat_filter(*owner, "started")):
        if isinstance(logged.event, StartedV1) and logged.event.discard_previous:
            yield logged.seq, datetime.fromtimestamp(logged.delivery.stored_at, UTC)
