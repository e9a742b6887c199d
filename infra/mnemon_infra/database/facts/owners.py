"""Users who have facts."""

from mnemon_contracts.subjects import Owner
from mnemon_infra.database.engine import Connection, query

PAGE = 500
"""Number of users that one query returns at most."""


@query
async def list_fact_owners(connection: Connection, after: Owner | None) -> list[Owner]:
    """Return the next page of users with a saved fact, sorted by owner.

    Args:
        connection: reads the generation.
        after: the last owner of the page before; None starts with the first user.
    """
    cursor = await connection.execute(
        "SELECT DISTINCT tenant, user_id FROM memory_events"
        " WHERE event = 'fact.saved' AND (tenant, user_id) > (%s, %s)"
        " ORDER BY tenant, user_id LIMIT %s",
        (*(after or ("", "")), PAGE),
    )
    return [(tenant, user) for tenant, user in await cursor.fetchall()]


async def count_fact_owners(connection: Connection) -> int:
    """Count the users with a saved fact."""
    cursor = await connection.execute(
        "SELECT count(*) FROM (SELECT DISTINCT tenant, user_id FROM memory_events WHERE event = 'fact.saved')"
        " AS owners"
    )
    (row,) = await cursor.fetchall()
    return int(row[0])
