"""Detection of collections that lack points for existing rows: lost, or unknown to a former version."""

from collections.abc import Iterable

from mnemon_contracts.subjects import Owner
from mnemon_infra.database.engine import Database
from mnemon_infra.database.memory.indexable import has_indexable_rows, list_indexable_owners
from mnemon_infra.vectors.port import Collection, VectorStore

FROM_ROWS = frozenset({Collection.MEMORIES, Collection.SUMMARIES})
"""Collections that the index sweep of a user fills from the rows alone."""


async def find_lost_collections(database: Database, vectors: VectorStore) -> list[Collection]:
    """List the collections that are empty although rows need points in them.

    Raises:
        DatabaseUnavailable, VectorsUnavailable: the database or the vector store does not answer.
    """
    empty = [each for each in Collection if not await vectors.count(each)]
    return [each for each in empty if await has_indexable_rows(database, each)]


async def list_owners_to_sweep(database: Database, collections: Iterable[Collection]) -> set[Owner]:
    """Return the users whose index sweep fills some of these collections.

    Raises:
        DatabaseUnavailable: the database cannot answer now.
    """
    return {
        owner
        for each in FROM_ROWS.intersection(collections)
        for owner in await list_indexable_owners(database, each)
    }
