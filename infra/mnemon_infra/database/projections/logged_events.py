"""Events of the log, decoded. Events that cannot be decoded are left out."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import NamedTuple

from nats.aio.client import Client

from mnemon_contracts.base import Event, InvalidBody
from mnemon_contracts.decode import UnknownEvent
from mnemon_contracts.subjects import Address, InvalidSubject
from mnemon_infra.broker.streams.log_reader import read_event_pages
from mnemon_infra.database.projections.rows import decode_event
from mnemon_infra.delivery import Delivery


class LoggedEvent(NamedTuple):
    """An event of the log, in its latest version."""

    delivery: Delivery
    address: Address
    event: Event
    id: str

    @property
    def seq(self) -> int:
        return self.delivery.sequence


async def stream_events(
    connection: Client, pattern: str, after: int = 0
) -> AsyncGenerator[LoggedEvent, None]:
    """Yield the events of a subject pattern beyond the log position `after`, in log order.

    Events that cannot be decoded are left out.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    async with aclosing(read_event_pages(connection, pattern, after)) as answers:
        async for page in answers:
            for delivery in page:
                try:
                    address, event, event_id = decode_event(delivery)
                except (InvalidSubject, UnknownEvent, InvalidBody):
                    continue  # `persist` makes a dead letter of it
                yield LoggedEvent(delivery, address, event, event_id)
