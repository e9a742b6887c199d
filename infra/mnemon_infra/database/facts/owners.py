"""Whose facts there are."""

from mnemon_contracts.subjects import Owner
from mnemon_infra.database.engine import Connection, Query

PAGE = 500
"""Users that are asked for at a time."""


def owners_of_facts(after: Owner | None) -> Query[list[Owner]]:
    """The next users, in order, of whom a fact was ever saved: beyond one of them, or from the first."""

    async def query(connection: Connection) -> list[Owner]:
        cursor = await connection.execute(
            "SELECT DISTINCT tenant, user_id FROM memory_events"
            " WHERE event = 'fact.saved' AND (tenant, user_id) > (%s, %s)"
            " ORDER BY tenant, user_id LIMIT %s",
            (*(after or ("", "")), PAGE),
        )
        return [(tenant, user) for tenant, user in await cursor.fetchall()]

    return query


async def how_many_own_facts(connection: Connection) -> int:
    """The users of whom a fact was ever saved."""
    cursor = await connection.execute(
        "SELECT count(*) FROM (SELECT DISTINCT tenant, user_id FROM memory_events WHERE event = 'fact.saved')"
        " AS owners"
    )
    (row,) = await cursor.fetchall()
    return int(row[0])
