"""Removal of copied model calls that retention has removed from the source."""

from collections.abc import AsyncIterator
from contextlib import aclosing

from nats.aio.client import Client

from mnemon.operations.tenant_move.copy import TenantCopy
from mnemon.operations.tenant_move.deployment import TenantSite
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import build_tenant_event_filter
from mnemon_infra.broker.dead_letters.listing import remove_message
from mnemon_infra.broker.streams.applied_position import read_log_end
from mnemon_infra.broker.streams.stream_reader import StreamMessage, read_stream
from mnemon_infra.database.audit.tenant_rows import delete_call_rows
from mnemon_infra.delivery import parse_moved


async def remove_stale_calls(copy: TenantCopy, source: TenantSite, target: TenantSite) -> int:
    """Remove copies of model calls that the source no longer has; return their number.

    An abandoned move leaves copies behind. Without this step, a later move would find different rows.

    Raises:
        nats.errors.Error, DatabaseUnavailable: a server does not answer. The call can be repeated.
    """
    kept = {delivery.sequence async for _, delivery in _stream_calls(source.connection, source.tenant)}
    stale = [
        delivery.sequence
        async for message, delivery in _stream_calls(target.connection, target.tenant)
        if copy.is_copy(message.headers)
        and (moved := parse_moved(message.headers)) is not None
        and moved.position not in kept
    ]
    await delete_call_rows(target.database, target.tenant, stale)
    for position in stale:
        await remove_message(target.connection, LOG, position)
    return len(stale)


async def _stream_calls(connection: Client, tenant: str) -> AsyncIterator[StreamMessage]:
    end, pattern = (
        await read_log_end(connection.jetstream()),
        build_tenant_event_filter(tenant, "model.called"),
    )
    pages = read_stream(connection, LOG, up_to=end, subject=pattern, headers_only=True)
    async with aclosing(pages):
        async for page in pages:
            for each in page:
                yield each
