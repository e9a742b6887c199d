"""Late events: those that a log has received since their tenant moved to another deployment.

`TenantMove._is_withheld` in `run.py` decides which of them are not forwarded.
"""

from collections.abc import Iterator, Mapping
from contextlib import aclosing
from typing import Final

import msgspec
from nats.aio.client import Client

from mnemon.display_text import format_count
from mnemon.operations.tenant_move.deployment import stream_log
from mnemon.operations.tenant_move.events import SourceEvent, build_copy_prefix, has_prefix
from mnemon_contracts.subjects import build_owner_filter, build_user_filters
from mnemon_infra.broker.streams.stream_reader import StreamMessage
from mnemon_infra.settings.residence import Residence, list_residences

ERASED: Final = "user.erased"


class _StartedBody(msgspec.Struct):
    """The part of the body of `started` that says whether the event removes the messages before it."""

    discard_previous: bool = False


def is_removal(event: SourceEvent) -> bool:
    """Return whether a bot's event removes all messages before it, of a conversation or of the user."""
    if event.name != "started":
        return event.name == "cleared"
    try:
        return msgspec.json.decode(event.delivery.body or b"{}", type=_StartedBody).discard_previous
    except (msgspec.MsgspecError, RecursionError):
        return False


async def has_own_messages(connection: Client, tenant: str, user: str, after: int) -> bool:
    """Return whether a log has a chat event of a user after the position `after`; copies do not count.

    A copy is an event that a move has brought into this log.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    pattern, _ = build_user_filters(tenant, user)
    async with aclosing(stream_log(connection, pattern, after=after, headers_only=True)) as events:
        async for _, delivery in events:
            if not delivery.is_moved:
                return True
    return False


async def count_late_events(connection: Client, tenant: str, residence: Residence | None) -> int:
    """Return the number of late events of a tenant that are not forwarded, withheld ones included.

    The number is 0 if the tenant has not moved. After the confirmation of a move, withheld events do not
    count, because `mnemon tenant confirm` has named them, nor do erasures: they concern the memory left in
    this deployment. Copies that an unfinished or abandoned revert has brought into this log do not count
    either.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    if residence is None or residence.state != "moved":
        return 0
    events = stream_log(connection, build_owner_filter(tenant), after=residence.copied, headers_only=True)
    withheld = 0 if residence.is_confirmed else len(residence.withheld)
    return sum([_is_late(each, residence) async for each in events]) + withheld


def _is_late(message: StreamMessage, residence: Residence) -> bool:
    event, delivery = message
    if has_prefix(event.headers, build_copy_prefix(residence.move_id, is_returning=True)):
        return False
    return not (residence.is_confirmed and f".{ERASED}." in delivery.subject)


async def count_all_late_events(connection: Client) -> dict[str, int]:
    """Return the number of late events of each tenant that has any.

    Raises:
        SettingsNotProvisioned: the bucket of settings is absent.
        nats.errors.Error: the server does not answer.
    """
    residences = await list_residences(connection)
    counts = {
        tenant: await count_late_events(connection, tenant, each) for tenant, each in residences.items()
    }
    return {tenant: count for tenant, count in counts.items() if count}


def warn_of_late_events(counts: Mapping[str, int]) -> Iterator[str]:
    """Yield a warning for each tenant with late events."""
    for tenant, count in counts.items():
        yield (
            f"{format_count(count, 'event')} of the tenant {tenant} arrived here since the tenant moved to"
            " another deployment: let its bots connect to the other deployment, and run `mnemon tenant move`"
            " again, which forwards events and lists the removals that it withholds"
        )
