"""Users who have facts."""

from mnemon_contracts.subjects import Owner
from mnemon_infra.database.engine import Connection, Query

PAGE = 500
"""Number of users that one query returns at most."""


def owners_of_facts(after: Owner | None) -> Query[list[Owner]]:
    """Return the next page of users with a saved fact, sorted by owner.

    Args:
        after: the last owner of the page before; None starts with the first user.
    """

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
    """Count the users with a saved fact."""
    cursor = await connection.execute(
        "SELECT count(*) FROM (SELECT DISTINCT tenant, user_id FROM memory_events WHERE event = 'fact.saved')"
        " AS owners"
    )
    (row,) = await cursor.fetchall()
    return int(row[0])
