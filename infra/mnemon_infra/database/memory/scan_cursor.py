"""Cursor of a scan through all users of a tenant, stored so that the scan survives the process."""

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import FromClause, Select, bindparam, select, true
from sqlalchemy.dialects.postgresql import insert

from mnemon_infra.database.engine import Connection, Lookup, Statement, make_parameter, query
from mnemon_infra.database.query_parts.tenants import select_tenants
from mnemon_infra.database.tables import messages, rounds


class TenantScan(NamedTuple):
    """The last scan of a tenant.

    Attributes:
        begun_at: the time at which the scan began; before the first scan, the time at which the tenant's
            first interval began; None until that time is recorded.
        reached: the last user that the scan has handled; empty before the first user; None if the scan is
            complete or has not begun.
    """

    tenant: str
    begun_at: datetime | None = None
    reached: str | None = None


def _select_scans() -> Select[Any]:
    """Select all tenants with their scans."""
    tenants = select_tenants(messages)
    return select(tenants.c.tenant, rounds.c.begun_at, rounds.c.reached).outerjoin_from(
        tenants, rounds, rounds.c.tenant == tenants.c.tenant
    )


def _select_users() -> Select[Any]:
    """Select the users of a tenant, with one index lookup for each user."""

    def select_next_user(user: Any, table: FromClause) -> Select[Any]:
        return (
            select(table.c.user_id)
            .where(table.c.tenant == make_parameter("of_tenant", str), table.c.user_id > user)
            .order_by(table.c.user_id)
            .limit(1)
        )

    users = select_next_user(make_parameter("reached", str), messages).cte("users", recursive=True)
    following = select_next_user(users.c.user_id, messages.alias("others")).lateral("following")
    users = users.union_all(select(following.c.user_id).select_from(users.join(following, true())))
    return select(users.c.user_id).limit(make_parameter("at_most", int))


def _upsert_scan() -> Any:
    insertion = insert(rounds).values({column.name: bindparam(column.name) for column in rounds.c})
    changed = {name: insertion.excluded[name] for name in ("begun_at", "reached")}
    return insertion.on_conflict_do_update(index_elements=["tenant"], set_=changed)


_TENANTS = Lookup(_select_scans())
_USERS = Lookup(_select_users())
_REACHED = Statement(_upsert_scan())


@query
async def load_scans(connection: Connection) -> list[TenantScan]:
    """Return the last scan of every tenant that has messages."""
    found = await _TENANTS.fetch(connection)
    return [TenantScan._make(row) for row in found]


@query
async def list_users_after(connection: Connection, tenant: str, reached: str, at_most: int) -> list[str]:
    """Return the next `at_most` users of a tenant after `reached`, in a stable order.

    An empty `reached` starts with the first user.
    """
    wanted = {"of_tenant": tenant, "reached": reached, "at_most": at_most}
    found = await _USERS.fetch(connection, **wanted)
    return [user for (user,) in found]


async def record_scan(connection: Connection, reached: TenantScan) -> None:
    """Store the state of a tenant's last scan, in place of the former one."""
    await _REACHED.execute_each(connection, [reached._asdict()])
