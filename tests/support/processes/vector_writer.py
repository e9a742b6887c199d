"""A process that writes batches of points into a folder, and prints the number of each, until killed."""

import asyncio
import sys
from pathlib import Path

from mnemon_infra.config import Deployment
from mnemon_infra.vectors.engines import open_vectors
from mnemon_infra.vectors.port import Collection
from tests.support.suites.vector_engine import DIMENSION, MODEL, direction, point

BATCH = 400


def written(batch: int) -> list[str]:
    """Return the names of the points in a batch."""
    return [f"{batch}-{n}" for n in range(BATCH)]


async def write(folder: Path) -> None:
    deployment = Deployment(vectors_folder=folder)
    async with open_vectors(deployment, model=MODEL, dimension=DIMENSION) as vectors:
        print("open", flush=True)
        for batch in range(sys.maxsize):
            points = [point(name, dense=direction(1, batch)) for name in written(batch)]
            await vectors.upsert(Collection.MEMORIES, points)
            print(batch, flush=True)


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1])))
