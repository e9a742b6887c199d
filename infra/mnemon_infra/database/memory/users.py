"""Queries of the admin page: tenants, users, their conversations, and the origin of facts."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import Select, any_, func, select

from mnemon_contracts.subjects import Owner
from mnemon_infra.database.engine import Connection, Lookup, make_parameter, query
from mnemon_infra.database.facts.fact_repository import FACT_EVENTS, FactEventRecord
from mnemon_infra.database.memory.user_memory import StoredRow, select_visible_messages
from mnemon_infra.database.query_parts import event_order as parts
from mnemon_infra.database.query_parts.event_order import bind_owner, is_owned
from mnemon_infra.database.query_parts.item_states import IS_WANTED, has_name
from mnemon_infra.database.tables import memory_events, messages

_OWNED: Final = ("messages", "memory_events", "profile_sets", "starts")
"""Tables in which tenants and users are looked up; each has an index that begins with tenant and user."""

MOST_CONVERSATIONS: Final = 500
"""Maximum number of conversations that `list_conversations` returns."""

_NEXT_TENANT: Final = "least({})".format(
    ", ".join(
        f"(SELECT tenant FROM {table} WHERE tenant > {{beyond}} ORDER BY tenant LIMIT 1)"  # noqa: S608 - names of our own
        for table in _OWNED
    )
)
_NEXT_USER: Final = "least({})".format(
    ", ".join(
        f"(SELECT user_id FROM {table} WHERE tenant = %(tenant)s AND {{beyond}}"  # noqa: S608 - names of our own
        " ORDER BY user_id LIMIT 1)"
        for table in _OWNED
    )
)

# One index lookup for each tenant: the rows in between are not read.
_TENANTS: Final = f"""
    WITH RECURSIVE found (tenant) AS (
        SELECT {_NEXT_TENANT.format(beyond="''")}
        UNION ALL
        SELECT {_NEXT_TENANT.format(beyond="found.tenant")} FROM found WHERE found.tenant IS NOT NULL
    )
    SELECT tenant FROM found WHERE tenant IS NOT NULL LIMIT %(most)s
"""  # noqa: S608 - made of our own text

# If the database sorts by code points ('B' before 'a'), as the embedded one does, ids with the same prefix
# are neighbours: the scan starts at the first and stops after the last. Otherwise the scan visits all users.
_USERS: Final = f"""
    WITH RECURSIVE found (user_id) AS (
        SELECT {
    _NEXT_USER.format(
        beyond="user_id > %(after)s AND user_id >= CASE WHEN 'B' < 'a' THEN %(begins)s ELSE '' END"
    )
}
        UNION ALL
        SELECT {_NEXT_USER.format(beyond="user_id > found.user_id")} FROM found
        WHERE found.user_id IS NOT NULL AND (starts_with(found.user_id, %(begins)s) OR 'a' < 'B')
    )
    SELECT user_id FROM found WHERE user_id IS NOT NULL AND starts_with(user_id, %(begins)s) LIMIT %(most)s
"""  # noqa: S608 - made of our own text


class ConversationOverview(NamedTuple):
    """A conversation with the number of its messages, and the times of the first and the last message."""

    id: str
    messages: int
    first_at: datetime
    last_at: datetime


class FactOrigin(NamedTuple):
    """The events of a fact in log order, and the messages that it was extracted from."""

    events: Sequence[FactEventRecord]
    sources: Sequence[StoredRow]


def _select_conversations() -> Select[Any]:
    visible = select_visible_messages(parts.select_timeline(), messages.c.sent_at).subquery("visible")
    last_at = func.max(visible.c.sent_at)
    return (
        select(visible.c.conversation, func.count(), func.min(visible.c.sent_at), last_at)
        .group_by(visible.c.conversation)
        .order_by(last_at.desc())
        .limit(MOST_CONVERSATIONS)
    )


def _select_events() -> Select[Any]:
    columns = (
        memory_events.c.event if name == "name" else memory_events.c[name] for name in FactEventRecord._fields
    )
    return select(*columns).where(is_owned(memory_events), has_name(FACT_EVENTS), IS_WANTED)


def _select_sources() -> Select[Any]:
    positions = make_parameter("positions", list[int])
    columns = (messages.c[name] for name in StoredRow._fields)
    return select_visible_messages(parts.select_timeline(), *columns).where(messages.c.seq == any_(positions))


_CONVERSATIONS = Lookup(_select_conversations())
_EVENTS = Lookup(_select_events())
_SOURCES = Lookup(_select_sources())


@query
async def list_tenants(connection: Connection, most: int) -> list[str]:
    """Return the first `most` tenants with rows in the tables `_OWNED`, sorted by id."""
    cursor = await connection.execute(_TENANTS, {"most": most})
    return [tenant for (tenant,) in await cursor.fetchall()]


@query
async def list_users(connection: Connection, tenant: str, begins: str, after: str, most: int) -> list[str]:
    """Return the users of a tenant whose ids begin with the text `begins`, at most `most`, sorted by id.

    `after` is the last user of the page before; "" starts with the first user.
    """
    wanted = {"tenant": tenant, "begins": begins, "after": after, "most": most}
    cursor = await connection.execute(_USERS, wanted)
    return [user for (user,) in await cursor.fetchall()]


@query
async def list_conversations(connection: Connection, owner: Owner) -> list[ConversationOverview]:
    """Return the `MOST_CONVERSATIONS` conversations of a user with the newest messages, newest first."""
    found = await _CONVERSATIONS.fetch(connection, **bind_owner(*owner))
    return sorted(
        map(ConversationOverview._make, found),
        key=lambda each: each.last_at,
        reverse=True,
    )


@query
async def load_fact_origin(connection: Connection, owner: Owner, fact_id: str) -> FactOrigin:
    """Return the events of a fact, and its source messages that are not cleared, discarded or erased."""
    rows = await _EVENTS.fetch(connection, **(bind_owner(*owner) | {"items": [fact_id]}))
    events = sorted(map(FactEventRecord._make, rows))
    bodies = [event.body or {} for event in events]
    positions = {seq for body in bodies for seq in body.get("lineage", {}).get("sources", ())}
    wanted = bind_owner(*owner) | {"positions": sorted(positions)}
    [said] = await _SOURCES.fetch_each(connection, [wanted]) if positions else [[]]
    return FactOrigin(events, sorted(StoredRow._make(row[1:]) for row in said))
