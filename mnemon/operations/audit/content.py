"""Check that content is removed where a watermark or an ending requires it, and only there."""

from collections.abc import Sequence
from contextlib import aclosing
from typing import Final

from nats.aio.client import Client

from mnemon.operations.audit.ledger import AuditFaults
from mnemon_contracts.subjects import Owner
from mnemon_infra.broker.streams.applied_position import read_applied_position
from mnemon_infra.broker.streams.triggers import has_waiting_sweep
from mnemon_infra.database.audit.removals import (
    GoneSummary,
    WrongRemoval,
    find_wrong_removals,
    find_wrong_summary_removals,
    stream_watermarked_owners,
)
from mnemon_infra.database.audit.row_places import list_erased_rows
from mnemon_infra.database.engine import Database
from mnemon_infra.database.projections.sweep import load_last_watermark

EXAMINATIONS: Final = 3
"""Number of times that a user is examined before a deviation is a fault: sweeps run during an audit."""


async def examine_summaries(
    connection: Client, database: Database, summaries: Sequence[GoneSummary], faults: AuditFaults
) -> None:
    """Add a fault for each summary that has lost its content without a watermark that requires it.

    Raises:
        DatabaseUnavailable, nats.errors.Error: a server does not answer.
    """
    position = await read_applied_position(connection.jetstream())
    for each in await find_wrong_summary_removals(database, summaries, up_to=position):
        faults.add("emptied", each.seq, "persist-sweep", "content")


async def examine_content(connection: Client, database: Database, up_to: int, faults: AuditFaults) -> int:
    """Compare the content of users against watermarks, endings and erasures.

    Users are left out if no event of theirs lacks content or may remove content. Add a fault for content that
    was removed without a reason, and for content that should have been removed and that no pending sweep will
    remove. Only events up to the log position `up_to` are compared. Summaries without content are
    left out; `examine_summaries` compares them.

    Returns:
        The number of events whose content a pending sweep will remove.

    Raises:
        DatabaseUnavailable, nats.errors.Error: a server does not answer.
    """
    waiting = 0
    async with aclosing(stream_watermarked_owners(database)) as users:
        async for owners in users:
            for each in await _find_lasting_deviations(connection, database, owners, up_to):
                if each.is_gone:
                    faults.add("emptied", each.seq, "persist-sweep", "content")
                elif await _is_sweep_pending(connection, database, each.owner, up_to):
                    waiting += 1
                else:
                    faults.add("kept", each.seq, "persist-sweep", "content")
    for place in await list_erased_rows(database, up_to):
        faults.add("kept", place.seq, "persist", place.table)
    return waiting


async def _find_lasting_deviations(
    connection: Client, database: Database, owners: Sequence[Owner], up_to: int
) -> Sequence[WrongRemoval]:
    """Return the deviations that remain after `EXAMINATIONS` examinations."""
    found: list[WrongRemoval] = []
    for look in range(EXAMINATIONS):
        position = await read_applied_position(connection.jetstream())
        now = await find_wrong_removals(database, owners, limit=up_to, up_to=position)
        found = [each for each in now if not look or each in found]
        if not found:
            break
    return found


async def _is_sweep_pending(connection: Client, database: Database, owner: Owner, up_to: int) -> bool:
    """Return whether a sweep is pending: a watermark beyond `up_to`, or a trigger that is not handled yet."""
    if await load_last_watermark(database, *owner) > up_to:
        return True
    return await has_waiting_sweep(connection, "persist", owner)
