"""Eager projection of an event ahead of persist, for a change that every later reply has to show."""

from mnemon_consumers.retrieve.memory.memory import Memory
from mnemon_contracts.subjects import Owner, build_notice_subject
from mnemon_infra.broker.broker import Broker
from mnemon_infra.broker.streams.log_reader import read_delivery
from mnemon_infra.database.engine import Database
from mnemon_infra.database.projections.rows import Rows, build_row
from mnemon_infra.database.projections.writer import write_rows


class EagerProjection:
    """Projection of events ahead of `persist`, after which every process drops its cache of the user."""

    def __init__(self, broker: Broker, database: Database, memory: Memory) -> None:
        """Create the projection; `broker` is the broker that answers requests."""
        self._broker = broker
        self._database = database
        self._memory = memory

    async def project_event(self, owner: Owner, position: int) -> None:
        """Write the row of an event; `persist` finds the row and keeps it. The user's lock must be held.

        An event without a row changes nothing, and causes no notice.

        On return the server has the notice for the other processes. The other processes get the notice before
        any later request, because a server delivers the messages of a connection in order.

        Raises:
            DatabaseUnavailable, nats.errors.Error: PostgreSQL or NATS does not answer. Other processes may
                still show the former state.
            DatabaseRefused: the database refuses the row.
        """
        connection = self._broker.connection
        # The event is read from the log for its time, so that persist writes the same row.
        row = build_row(await read_delivery(connection, position))
        if row is None:
            return
        rows = Rows()
        rows.add(row)
        await write_rows(self._database, rows)
        self._memory.drop_user(owner)
        # The notice has no position: earlier events may not be projected, but reads from now on are right.
        await connection.publish(build_notice_subject(*owner))
        await connection.flush()
