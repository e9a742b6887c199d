"""Bare loop that `bench searchable` compares with: writes the same vectors into a separate engine.

It has no log and no database, and serves no requests.
"""

import asyncio
import json
import sys
import time

from mnemon_bench.throughput.searchable import TENANT, make_text, name_user
from mnemon_contracts.identity import derive_point_id
from mnemon_contracts.settings.groups import Embedding
from mnemon_infra.config import Deployment
from mnemon_infra.vectors.port import Collection
from mnemon_infra.vectors.vector_index import SearchableItem, build_points, open_index

BATCH = 500


async def measure_indexing(deployment: Deployment, numbers: range) -> None:
    """Embed and upsert the messages with these `numbers`, then print the seconds that this took, as JSON."""
    async with open_index(deployment, Embedding()) as vector_index:
        begun = time.perf_counter()
        for start in range(numbers.start, numbers.stop, BATCH):
            batch = range(start, min(start + BATCH, numbers.stop))
            said = [_make_item(number) for number in batch]
            await vector_index.vectors.upsert(Collection.MESSAGES, await build_points(vector_index, said))
        print(json.dumps({"seconds": time.perf_counter() - begun}))


def _make_item(number: int) -> SearchableItem:
    owner = TENANT, name_user(number)
    return SearchableItem(
        derive_point_id(*owner, str(number)), owner, {"seq": number}, make_text(number), make_text(number)
    )


if __name__ == "__main__":
    deployment, first, end = sys.argv[1:]
    asyncio.run(measure_indexing(Deployment.from_json(deployment), range(int(first), int(end))))
