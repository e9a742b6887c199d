"""A user's events that the log has already, so that an import can be repeated or continued."""

from dataclasses import dataclass, field

from nats.aio.client import Client

from mnemon.operations.memory_lines import derive_portable_id, derive_start_id
from mnemon_contracts.base import Event
from mnemon_contracts.events.chat import MessageV1
from mnemon_contracts.events.memory import FactSavedV1
from mnemon_contracts.subjects import Owner, build_tenant_filters, build_user_filters
from mnemon_infra.broker.streams.log_reader import read_last_position
from mnemon_infra.database.projections.logged_events import stream_events


@dataclass(slots=True)
class ExistingEvents:
    """Events of one user that the log has already, and the facts and messages among them.

    Attributes:
        events: log positions by event id; for copies the position of the first copy.
        facts: ids of facts that were ever saved, each with the id of the event that saved it.
        source_facts: ids of the facts that the source of the import has too.
        numbers: log positions of imported messages, by their numbers in the source; 0 until the log has the
            message.
    """

    events: dict[str, int] = field(default_factory=dict)
    facts: dict[str, str] = field(default_factory=dict)
    source_facts: set[str] = field(default_factory=set)
    numbers: dict[int, int] = field(default_factory=dict)

    def has_foreign_fact(self, event: Event) -> bool:
        """Return whether the log has another fact of the user with the fact id of an event.

        If the event is a `FactSavedV1`, also record its fact: in `facts` if the id is new, and in
        `source_facts` unless another fact has the id.
        """
        fact_id = getattr(event, "fact_id", None)
        if fact_id is None:
            return False
        if isinstance(event, FactSavedV1) and self.facts.setdefault(fact_id, str(event.id)) == event.id:
            self.source_facts.add(fact_id)
        return fact_id in self.facts and fact_id not in self.source_facts

    def may_keep_id(self, event: Event) -> bool:
        """Return whether the fact of an event may keep its id.

        A fact keeps its id if no other fact has the id, and all facts of the user come from the same kind of
        source.
        """
        fact_id, kind = getattr(event, "fact_id", None), str(event.id).partition(":")[0]
        is_taken = self.facts.get(str(fact_id), event.id) != event.id
        return not is_taken and all(by.startswith(f"{kind}:") for by in self.facts.values())


async def read_existing_events(connection: Client, owner: Owner) -> ExistingEvents:
    """Read the log, and return the events of a user in it.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    found = ExistingEvents()
    for pattern in build_user_filters(*owner):
        async for logged in stream_events(connection, pattern):
            event, conversation = logged.event, logged.address.conversation
            content = event.content if isinstance(event, MessageV1) else ""
            event_id = derive_portable_id(*owner, logged.id, content)
            found.events.setdefault(event_id, logged.seq)
            if conversation is not None:
                # The conversation has started with this event at the latest: skip its start.
                found.events.setdefault(derive_start_id(*owner, conversation), logged.seq)
            if isinstance(event, FactSavedV1):
                found.facts.setdefault(event.fact_id, event_id)
    return found


async def is_tenant_empty(connection: Client, tenant: str) -> bool:
    """Return whether the log has no event of a tenant; if so, its users need no look-up.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    return not await read_last_position(connection, *build_tenant_filters(tenant))
