"""Run of an audit: reads the log once and compares it with every store."""

import time
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from nats.aio.client import Client
from nats.js.errors import NotFoundError

from mnemon.operations.audit.applied import LogAudit
from mnemon.operations.audit.content import examine_content, examine_summaries
from mnemon.operations.audit.ledger import Audit, AuditFaults, Durable, PositionSet
from mnemon.operations.audit.proposals import ProposalAudit
from mnemon.operations.audit.vectors import VectorAudit
from mnemon_contracts.streams import LOG
from mnemon_infra.broker.dead_letters.origins import summarise_letters
from mnemon_infra.broker.streams.applied_position import read_applied_position, read_log_end
from mnemon_infra.broker.streams.stream_reader import read_stream
from mnemon_infra.database.audit.events import UserSample
from mnemon_infra.database.audit.row_places import count_rows, find_highest_position, stream_row_places
from mnemon_infra.database.engine import Database
from mnemon_infra.database.facts.decisions import count_batches
from mnemon_infra.durables import DURABLES
from mnemon_infra.vectors.port import PointPages

AuditProgress = Callable[[int, int], None]
"""Function that receives the log position that the audit has reached, and the last position to read."""


SUMMARY_BATCH: Final = 1000
"""Number of summaries without content after which the audit examines those that it has collected."""


class NotProvisioned(Exception):
    """The log or its durable `persist` does not exist: it was never created, or was deleted."""


async def run_audit(
    connection: Client,
    database: Database,
    sample: UserSample,
    progress: AuditProgress,
    pages: PointPages | None = None,
) -> Audit:
    """Compare the log, up to the applied position of `persist`, with rows, dead letters and points.

    Each event must have a row, a dead letter or a reason to have neither. Each proposal up to the applied
    position of `dedupe` must have one decision. The content of the users in `sample` is compared; the
    existence of rows is checked for all users. Without `pages`, points are not compared.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
        VectorsUnavailable: the vectors cannot be read now.
        nats.errors.Error: the broker does not answer.
        NotProvisioned: the log, or its durable `persist`, does not exist.
    """
    begun = time.monotonic()
    stream_context = connection.jetstream()
    # Read this position first: the log then has the decisions on all proposals up to it.
    await _require_log(connection)
    decided = await read_applied_position(stream_context, "dedupe")
    up_to = await read_applied_position(stream_context)
    # Read dead letters after the positions: every handled event that failed has its dead letter by now.
    dead = await summarise_letters(connection)
    faults = AuditFaults()
    applied = LogAudit(database, up_to, dead.log_reasons.get("persist", {}), sample, faults)
    proposals = ProposalAudit(database, decided)
    async with aclosing(read_stream(connection, LOG, up_to=up_to)) as log:
        async for page in log:
            deliveries = [delivery for _, delivery in page]
            await applied.audit_page(deliveries)
            await proposals.collect_page(deliveries)
            if len(applied.summaries) >= SUMMARY_BATCH:
                await examine_summaries(connection, database, applied.summaries, faults)
                applied.summaries.clear()
            progress(deliveries[-1].sequence, up_to)
    await proposals.record_faults(connection, up_to, faults)
    await examine_summaries(connection, database, applied.summaries, faults)
    waiting = await examine_content(connection, database, up_to, faults)
    applied.outcomes.waiting = waiting
    await _record_stray_rows(database, up_to, applied.matched, faults)
    await _record_rows_beyond_log(connection, database, faults)
    vectors = None
    if pages is not None:
        given_up = dead.log_reasons.get("persist", {})
        vectors = await VectorAudit(connection, database, pages, given_up, faults).examine_points()
    return Audit(
        up_to=up_to,
        beyond=max(0, await read_log_end(stream_context) - up_to),
        every=sample.every,
        seconds=time.monotonic() - begun,
        persist=applied.outcomes,
        dedupe=proposals.outcomes,
        extract=await count_batches(database, up_to),
        vectors=vectors,
        letters=dead.counts,
        durables=[await _load_durable(connection, each.stream, each.name) for each in DURABLES.values()],
        faults=faults,
    )


async def _require_log(connection: Client) -> None:
    try:
        await connection.jetstream().consumer_info(LOG, "persist")
    except NotFoundError as error:
        raise NotProvisioned(
            "the stream LOG, or its durable `persist`, does not exist; `mnemon status` shows the next step"
        ) from error


async def _record_stray_rows(
    database: Database, up_to: int, matched: PositionSet, faults: AuditFaults
) -> None:
    """Add a fault for each row without an event in the log, and for each further row of the same event.

    The rows are read only if their number differs from the number of matched positions.
    """
    if await count_rows(database, up_to) == len(matched):
        return
    seen = PositionSet(up_to)
    async with aclosing(stream_row_places(database, up_to)) as pages:
        async for page in pages:
            for place in page:
                if place.seq not in matched or place.seq in seen:
                    faults.add("stray", place.seq, "persist", place.table, place.event_id)
                else:
                    seen.add(place.seq)


async def _record_rows_beyond_log(connection: Client, database: Database, faults: AuditFaults) -> None:
    """Add a fault for each row beyond the end of the log: from a deleted log, or a newer copy of this log."""
    # Read the database first: an event that arrives meanwhile is in the log before it is in the database.
    highest = await find_highest_position(database)
    end = await read_log_end(connection.jetstream())
    if highest <= end:
        return
    async with aclosing(stream_row_places(database, highest, after=end)) as pages:
        async for page in pages:
            for place in page:
                faults.add("beyond_log", place.seq, "persist", place.table, place.event_id)


async def _load_durable(connection: Client, stream: str, name: str) -> Durable:
    try:
        info = await connection.jetstream().consumer_info(stream, name)
    except NotFoundError:
        return Durable(stream, name, 0, 0, 0)
    return Durable(stream, name, info.num_pending or 0, info.num_ack_pending or 0, info.num_redelivered or 0)
