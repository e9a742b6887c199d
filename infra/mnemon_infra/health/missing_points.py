"""Collections without points though there are rows to be found: lost, or unknown to a former version."""

from collections.abc import Iterable

from mnemon_contracts.subjects import Owner
from mnemon_infra.database.engine import Database
from mnemon_infra.database.memory.indexable import is_any_shown, owners_shown
from mnemon_infra.vectors.port import Collection, VectorStore

FROM_ROWS = frozenset({Collection.MEMORIES, Collection.SUMMARIES})
"""Collections that a look through a user's points fills, from the rows alone."""


async def lost_collections(database: Database, vectors: VectorStore) -> list[Collection]:
    """List the collections that are empty and must not be.

    Raises:
        DatabaseUnavailable, VectorsUnavailable: one of the two does not answer.
    """
    empty = [each for each in Collection if not await vectors.count(each)]
    return [each for each in empty if await is_any_shown(database, each)]


async def owners_to_look_through(database: Database, collections: Iterable[Collection]) -> set[Owner]:
    """The users a look through whose points fills some of these collections.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
    """
    return {
        owner for each in FROM_ROWS.intersection(collections) for owner in await owners_shown(database, each)
    }
