"""Removal of copied model calls that retention has removed from the source."""

from mnemon.operations.tenant_move.copy import TenantCopy
from mnemon.operations.tenant_move.deployment import TenantSite, stream_log
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import build_tenant_event_filter
from mnemon_infra.broker.dead_letters.listing import remove_message
from mnemon_infra.database.audit.tenant_rows import delete_call_rows
from mnemon_infra.delivery import parse_moved


async def remove_stale_calls(copy: TenantCopy, source: TenantSite, target: TenantSite) -> None:
    """Remove copies of model calls that the source no longer has.

    An abandoned move leaves copies behind. Without this step, a later move would find different rows.

    Raises:
        nats.errors.Error, DatabaseUnavailable: a server does not answer. The call can be repeated.
    """
    calls = build_tenant_event_filter(source.tenant, "model.called")
    kept = {
        delivery.sequence async for _, delivery in stream_log(source.connection, calls, headers_only=True)
    }
    stale = [
        delivery.sequence
        async for message, delivery in stream_log(target.connection, calls, headers_only=True)
        if copy.is_copy(message.headers)
        and (moved := parse_moved(message.headers)) is not None
        and moved.position not in kept
    ]
    await delete_call_rows(target.database, target.tenant, stale)
    for position in stale:
        await remove_message(target.connection, LOG, position)
