"""Cursor of a scan through all users of a tenant, stored so that it survives the process."""

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import FromClause, Select, bindparam, select, true
from sqlalchemy.dialects.postgresql import insert

from mnemon_infra.database.engine import Connection, Lookup, Statement, parameter, query
from mnemon_infra.database.tables import messages, rounds


class Round(NamedTuple):
    """The last scan of a tenant.

    Attributes:
        tenant: the tenant.
        begun_at: when it began; None if there was none yet.
        reached: the last user it has handled; None if it is complete.
    """

    tenant: str
    begun_at: datetime | None = None
    reached: str | None = None


def _tenants() -> Select[Any]:
    """Select all tenants with their scans, with one index lookup for each tenant."""
    others = messages.alias("others")
    first = select(messages.c.tenant).order_by(messages.c.tenant).limit(1).cte("tenants", recursive=True)
    following = (
        select(others.c.tenant)
        .where(others.c.tenant > first.c.tenant)
        .order_by(others.c.tenant)
        .limit(1)
        .lateral("following")
    )
    tenants = first.union_all(select(following.c.tenant).select_from(first.join(following, true())))
    return select(tenants.c.tenant, rounds.c.begun_at, rounds.c.reached).outerjoin_from(
        tenants, rounds, rounds.c.tenant == tenants.c.tenant
    )


def _users() -> Select[Any]:
    """Select the users of a tenant, with one index lookup for each user."""

    def beyond(user: Any, table: FromClause) -> Select[Any]:
        return (
            select(table.c.user_id)
            .where(table.c.tenant == parameter("of_tenant", str), table.c.user_id > user)
            .order_by(table.c.user_id)
            .limit(1)
        )

    users = beyond(parameter("reached", str), messages).cte("users", recursive=True)
    following = beyond(users.c.user_id, messages.alias("others")).lateral("following")
    users = users.union_all(select(following.c.user_id).select_from(users.join(following, true())))
    return select(users.c.user_id).limit(parameter("at_most", int))


def _reached() -> Any:
    insertion = insert(rounds).values({column.name: bindparam(column.name) for column in rounds.c})
    changed = {name: insertion.excluded[name] for name in ("begun_at", "reached")}
    return insertion.on_conflict_do_update(index_elements=["tenant"], set_=changed)


_TENANTS = Lookup(_tenants())
_USERS = Lookup(_users())
_REACHED = Statement(_reached())


@query
async def last_rounds(connection: Connection) -> list[Round]:
    """Return the last scan of every tenant that has messages."""
    found = await _TENANTS.fetch(connection)
    return [Round._make(row) for row in found]


@query
async def users_beyond(connection: Connection, tenant: str, reached: str, at_most: int) -> list[str]:
    """Return the next users of a tenant in a stable order; "" starts with the first user."""
    wanted = {"of_tenant": tenant, "reached": reached, "at_most": at_most}
    found = await _USERS.fetch(connection, **wanted)
    return [user for (user,) in found]


async def note(connection: Connection, reached: Round) -> None:
    """Record how far a scan has come."""
    await _REACHED.execute_each(connection, [reached._asdict()])
