"""Changes: what a request makes happen goes into the log, and is read back from there."""

from uuid import uuid4

from faststream.nats import NatsBroker

from mnemon_contracts.base import Event
from mnemon_contracts.registry import EVENTS
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import Address, memory_subject
from mnemon_infra.broker.dead_letters.listing import Letter, rejected_events
from mnemon_infra.broker.streams.applied_position import log_end
from mnemon_infra.telemetry import tracing

_NAMES = {contract.latest: contract.name for contract in EVENTS.values()}


class UserLog:
    """Writes events about the users that requests come from."""

    def __init__(self, broker: NatsBroker) -> None:
        self._broker = broker

    async def publish(self, address: Address, event: Event, event_id: str | None = None) -> int:
        """Put an event into the log; returns its position.

        Args:
            address: where the request came from.
            event: what happened.
            event_id: its id, unique among all users'; None makes one.

        Raises:
            InvalidBody: it is too large.
            nats.errors.Error: it is not known to be stored.
        """
        acknowledgement = await self._broker.config.connection_state.stream.publish(
            memory_subject(address.tenant, address.user, _NAMES[type(event)]),
            event.body(),
            stream=LOG,
            headers={"Nats-Msg-Id": event_id or str(uuid4()), **tracing.headers()},
        )
        return int(acknowledgement.seq)

    async def rejected(self, address: Address) -> list[Letter]:
        """The dead letters of the user's events that are not in the rows, in log order.

        Raises:
            nats.errors.Error: the server does not answer.
        """
        connection = self._broker.config.connection_state.connection
        return await rejected_events(connection, address.tenant, address.user)

    async def end(self) -> int:
        """The log's last position: whoever changes something reads all that came before.

        Raises:
            nats.errors.Error: the server does not answer.
        """
        return await log_end(self._broker.config.connection_state.stream)
