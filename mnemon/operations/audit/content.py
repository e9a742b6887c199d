"""Whether content is gone exactly where it has to be."""

from collections.abc import Sequence
from contextlib import aclosing
from typing import Final

from nats.aio.client import Client

from mnemon.operations.audit.ledger import AuditFaults
from mnemon_contracts.subjects import Owner, work_subject
from mnemon_infra.broker.streams.applied_position import applied_position
from mnemon_infra.broker.streams.triggers import waiting
from mnemon_infra.database.audit.orphans import beneath_erasures
from mnemon_infra.database.audit.removals import GoneSummary, Unlike, unlike, unlike_summaries, watermarked
from mnemon_infra.database.engine import Database
from mnemon_infra.database.projections.sweep import last_watermark

LOOKS: Final = 3
"""How often a user is looked at before anything is a fault: sweeps go on meanwhile."""


async def examine_summaries(
    connection: Client, database: Database, summaries: Sequence[GoneSummary], faults: AuditFaults
) -> None:
    """Hold summaries without content against watermarks.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
        nats.errors.Error: the broker does not.
    """
    position = await applied_position(connection.jetstream())
    for each in await unlike_summaries(database, summaries, up_to=position):
        faults.add("emptied", each.seq, "persist-sweep", "content")


async def examine_content(connection: Client, database: Database, up_to: int, faults: AuditFaults) -> int:
    """Hold what is gone against watermarks and endings, of every user who has some.

    Args:
        connection: where the broker is.
        database: where the projections are.
        up_to: later events are on their way.
        faults: where faults are put.

    Returns:
        How many events wait for a sweep.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
        nats.errors.Error: the broker does not.
    """
    waiting = 0
    async with aclosing(watermarked(database)) as users:
        async for owners in users:
            for each in await _lasting(connection, database, owners, up_to):
                if each.is_gone:
                    faults.add("emptied", each.seq, "persist-sweep", "content")
                elif await _is_awaited(connection, database, each.owner, up_to):
                    waiting += 1
                else:
                    faults.add("kept", each.seq, "persist-sweep", "content")
    for place in await beneath_erasures(database, up_to):
        faults.add("kept", place.seq, "persist", place.table)
    return waiting


async def _lasting(
    connection: Client, database: Database, owners: Sequence[Owner], up_to: int
) -> Sequence[Unlike]:
    """What is not as it must be, however often one looks."""
    found: list[Unlike] = []
    for look in range(LOOKS):
        position = await applied_position(connection.jetstream())
        now = await unlike(database, owners, limit=up_to, up_to=position)
        found = [each for each in now if not look or each in found]
        if not found:
            break
    return found


async def _is_awaited(connection: Client, database: Database, owner: Owner, up_to: int) -> bool:
    """Something newer takes content of the user's away, or the trigger of a sweep lies there still."""
    if await last_watermark(database, *owner) > up_to:
        return True
    return bool(await waiting(connection, work_subject("persist", *owner)))
