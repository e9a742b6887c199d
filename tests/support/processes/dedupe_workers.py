"""Process with several workers of `dedupe`, each with its own database pool, and one worker of `persist`."""

import asyncio
import sys
from contextlib import AsyncExitStack
from pathlib import Path

from mnemon_consumers.dedupe.handler import DedupeConsumer
from mnemon_consumers.persist.handler import PersistConsumer
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.vectors.engines import open_vectors
from mnemon_infra.vectors.vector_index import VectorIndex
from tests.support.facts.preset_embedder import PresetEmbedder

WORKERS = 4


async def work(deployment: Deployment, workers: int) -> None:
    """Run `workers` workers of `dedupe` on one vector store, and one of `persist`, until killed."""
    embedder = PresetEmbedder()
    async with AsyncExitStack() as ends:
        opened = open_vectors(deployment, model=embedder.model, dimension=embedder.dimension)
        vector_index = VectorIndex(await ends.enter_async_context(opened), embedder)
        for number in range(workers):
            database = Database(deployment, name=f"dedupe-{number}")
            await database.open()
            ends.push_async_callback(database.close)
            await ends.enter_async_context(DedupeConsumer(database, vector_index, deployment).run())
        await ends.enter_async_context(PersistConsumer(database, deployment).run())
        print("ready", flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    nats_url, database_url, schema, vectors, workers = sys.argv[1:]
    place = {"qdrant_url": vectors} if "://" in vectors else {"vectors_folder": Path(vectors)}
    located = Deployment(nats_url=nats_url, database_dsn=database_url, database_schema=schema, **place)
    asyncio.run(work(located, int(workers)))
