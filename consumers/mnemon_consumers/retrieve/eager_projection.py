"""Projection of an event ahead of persist, for a change that no later reply may miss."""

from faststream.nats import NatsBroker
from nats.aio.client import Client

from mnemon_consumers.retrieve.memory import Memory
from mnemon_contracts.subjects import Owner, changed_subject
from mnemon_infra.broker.streams.log_reader import delivery_at
from mnemon_infra.database.engine import Database
from mnemon_infra.database.projections.rows import Rows, row_of
from mnemon_infra.database.projections.writer import write


class Projection:
    """Writes the row of an event that is in the log, and has every process drop its cache of the user."""

    def __init__(self, broker: NatsBroker, database: Database, memory: Memory) -> None:
        """`broker` is the one that answers requests."""
        self._broker = broker
        self._database = database
        self._memory = memory

    async def apply(self, owner: Owner, position: int) -> None:
        """Write the row of an event under the user's lock; persist finds it and leaves it as it is.

        On return the notice to the other processes is with the server, before any request that is sent from
        then on: a server hands a connection its messages in their order.

        Args:
            owner: the user that the event is about.
            position: the log position of the event.

        Raises:
            DatabaseUnavailable, nats.errors.Error: other processes may still show the former state.
        """
        connection: Client = self._broker.config.connection_state.connection
        # As the log has it, to the time: persist writes the same row.
        row = row_of(await delivery_at(connection, position))
        if row is None:
            return
        rows = Rows()
        rows.add(row)
        await write(self._database, rows)
        self._memory.drop(owner)
        # Without a position: all before it is not written yet, and what is read now is right.
        await connection.publish(changed_subject(*owner))
        await connection.flush()
