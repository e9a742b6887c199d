"""Bare loop that `bench dedupe` compares with: upserts each proposal unless a search finds a similar one.

It has no log, no locks and no rules.
"""

import asyncio
import json
import sys
import time

from mnemon_bench.throughput.dedupe import generate_proposals
from mnemon_contracts.identity import derive_point_id
from mnemon_contracts.settings.groups import Embedding
from mnemon_infra.config import Deployment
from mnemon_infra.vectors.port import Collection
from mnemon_infra.vectors.vector_index import SearchableItem, build_points, open_index


async def measure_decisions(deployment: Deployment, proposed: int) -> None:
    """Store every proposal unless a similar one is stored, then print the seconds that this took, as JSON.

    `proposed` is the number of proposals.
    """
    async with open_index(deployment, Embedding()) as vector_index:
        assert vector_index.embedder is not None
        begun = time.perf_counter()
        for number, (user, text) in enumerate(generate_proposals(proposed)):
            owner = "bench", user
            point_id = derive_point_id(*owner, str(number))
            (point,) = await build_points(
                vector_index, [SearchableItem(point_id, owner, {"fact_id": number}, text, text)]
            )
            assert point.dense is not None
            ((*nearest,),) = await vector_index.vectors.search(Collection.MEMORIES, owner, [point.dense], 1)
            if not nearest or nearest[0].score < vector_index.embedder.thresholds.duplicate:
                await vector_index.vectors.upsert(Collection.MEMORIES, [point])
        print(json.dumps({"seconds": time.perf_counter() - begun}))


if __name__ == "__main__":
    deployment, proposed = sys.argv[1:]
    asyncio.run(measure_decisions(Deployment.from_json(deployment), int(proposed)))
