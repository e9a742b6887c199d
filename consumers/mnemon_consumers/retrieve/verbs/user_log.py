"""Events of a user in the log: append those of requests, and read those that `persist` rejected."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeVar
from uuid import uuid4

from mnemon_consumers.retrieve.memory.cache import PositionedValue
from mnemon_contracts.base import Event
from mnemon_contracts.identity import MESSAGE_ID
from mnemon_contracts.registry import EVENTS
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import Address, build_memory_subject, build_user_filters
from mnemon_infra.broker.broker import Broker
from mnemon_infra.broker.dead_letters.listing import Letter, find_message, read_rejected_events
from mnemon_infra.broker.streams.applied_position import read_log_end
from mnemon_infra.telemetry import tracing

PUBLISH_TIMEOUT: Final = 2.0
"""Maximum wait for the log to confirm an event, in seconds.

Clients wait 3 s for a reply, so they receive the error about an unconfirmed event, which says whether they
may repeat the request.
"""

REPLY_HEADROOM: Final = 16 * 1024
"""Bytes of a reply that its headers, and warnings about unknown fields of the request, may take."""

Listing = TypeVar("Listing")

_CONTRACTS = {contract.latest: contract for contract in EVENTS.values()}


class UserLog:
    """Events of users in the log: appends those of requests, and reads those that `persist` rejected.

    The methods that ask the server may raise `nats.errors.Error`.
    """

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    @property
    def reply_limit(self) -> int:
        """Return the maximum number of bytes of a reply without its headers and warnings."""
        return self._broker.connection.max_payload - REPLY_HEADROOM

    @property
    def listing_limit(self) -> int:
        """Return the maximum number of bytes of a user's tasks or data: half of the longest message.

        A context has the user's data besides its text.
        """
        return self._broker.connection.max_payload // 2

    async def find_excess_size(
        self,
        load: Callable[[int | None], Awaitable[PositionedValue[Listing]]],
        measure: Callable[[Listing], int],
        measure_changed: Callable[[Listing], int],
    ) -> int | None:
        """Return the number of bytes of a user's tasks or data after a change that makes them too large.

        Args:
            load: loads the tasks or the data as of a log position; None needs no position.
            measure: returns the bytes of the tasks or the data.
            measure_changed: returns the bytes that the tasks or the data would have after the change.

        Returns:
            None if `listing_limit` is kept, or if the change makes the tasks or the data no larger.
        """
        if measure_changed((await load(None)).value) <= self.listing_limit // 2:
            return None  # usual, even if the projections lack the user's last changes
        known = (await load(await self.read_end())).value
        size = measure_changed(known)
        return size if size > self.listing_limit and size > measure(known) else None

    async def publish_event(self, address: Address, event: Event, event_id: str | None = None) -> int:
        """Append an event to the log; return its position.

        `event_id` is unique among the events of all users; None creates one. An event with the id of one that
        the log received in its duplicate window is not appended; the position of the earlier one is returned.

        Raises:
            InvalidBody: the event is too large.
            nats.errors.Error: NATS did not confirm the event within `PUBLISH_TIMEOUT`; the log may have the
                event or not. Repeat the call with the same `event_id`.
        """
        contract = _CONTRACTS[type(event)]
        acknowledgement = await self._broker.stream_context.publish(
            build_memory_subject(address.tenant, address.user, contract.name, len(contract.versions)),
            event.encode_body(),
            timeout=PUBLISH_TIMEOUT,
            stream=LOG,
            headers={MESSAGE_ID: event_id or str(uuid4()), **tracing.build_headers()},
        )
        return int(acknowledgement.seq)

    async def read_rejected_letters(self, address: Address) -> list[Letter]:
        """Return dead letters of the user's events that `persist` rejected, in log order, without bodies."""
        return await read_rejected_events(self._broker.connection, address.tenant, address.user)

    async def may_be_owned(self, address: Address, seq: int) -> bool:
        """Return whether an event may be the user's: its subject names the user, or the log lacks it."""
        message = await find_message(self._broker.connection, LOG, seq)
        prefixes = tuple(each.removesuffix(">") for each in build_user_filters(address.tenant, address.user))
        return message is None or (message.headers or {})["Nats-Subject"].startswith(prefixes)

    async def read_end(self) -> int:
        """Return the log's last position; 0 if the log is empty."""
        return await read_log_end(self._broker.stream_context)
