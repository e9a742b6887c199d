"""What was spent on models."""

from datetime import datetime
from typing import Any

from sqlalchemy import DateTime, Select, String, bindparam, func, select

from infra.database.engine import Connection, Lookup, Query
from infra.database.tables import model_calls as calls


def _spent() -> Select[Any]:
    return select(func.coalesce(func.sum(calls.c.usd), 0.0)).where(
        calls.c.tenant == bindparam("of_tenant", type_=String),
        calls.c.at >= bindparam("since", type_=DateTime(timezone=True)),
    )


_SPENT = Lookup(_spent())


def spent_since(tenant: str, since: datetime) -> Query[float]:
    """US dollars that a tenant's calls cost since then; those without a price cost nothing."""

    async def query(connection: Connection) -> float:
        ((row,),) = await _SPENT.rows(connection, [{"of_tenant": tenant, "since": since}])
        return float(row[1])

    return query
