"""Sample of a tenant's messages and facts, for statistics of the words in them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import Select, literal, select, union_all

from mnemon_infra.database.engine import Connection, Lookup, make_parameter, query
from mnemon_infra.database.query_parts.item_states import VERSIONS, has_name
from mnemon_infra.database.tables import memory_events, messages

MESSAGES: Final = 3000
"""Maximum number of messages of a sample."""

FACTS: Final = 1000
"""Maximum number of versions of facts of a sample."""


class SampledText(NamedTuple):
    """The text of a message or of a fact.

    `name` is the speaker of the message, if known, and `sent_at` its time; a fact has None for both.
    """

    text: str
    name: str | None
    sent_at: datetime | None


def _select_sample() -> Select[Any]:
    """Select the first rows in index order, as a cheap sample: ids do not depend on the words of a text."""
    tenant = make_parameter("of_tenant", str)
    said = (
        select(messages.c.content.label("text"), messages.c.name, messages.c.sent_at)
        .where(messages.c.tenant == tenant, messages.c.content.isnot(None))
        .limit(MESSAGES)
    )
    kept = (
        select(
            memory_events.c.body["fact"]["text"].astext,
            literal(None, messages.c.name.type),
            literal(None, messages.c.sent_at.type),
        )
        .where(memory_events.c.tenant == tenant, has_name(VERSIONS), memory_events.c.body.isnot(None))
        .limit(FACTS)
    )
    return select(union_all(said, kept).subquery("sample"))


_SAMPLE = Lookup(_select_sample())


@query
async def load_sample(connection: Connection, tenants: Sequence[str]) -> list[list[SampledText]]:
    """Return up to `MESSAGES` messages and `FACTS` versions of facts of each tenant, in any order."""
    found = await _SAMPLE.fetch_each(connection, [{"of_tenant": tenant} for tenant in tenants])
    return [[SampledText(*row) for row in rows] for rows in found]
