"""Messages with equal texts, from publication to search."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from mnemon_consumers.index.decide import plan_batch as plan_points
from mnemon_consumers.index.point_writer import write_batch
from mnemon_consumers.persist.decide import plan_batch as plan_rows
from mnemon_consumers.retrieve.memory.memory import Memory
from mnemon_consumers.retrieve.search.service import Search
from mnemon_contracts.events.chat import MessageV1
from mnemon_contracts.settings.groups import Embedding, Retrieval
from mnemon_contracts.subjects import build_chat_subject
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.projections.writer import write_rows
from mnemon_infra.delivery import Delivery
from mnemon_infra.settings.store import LiveSettings
from mnemon_infra.vectors.vector_index import open_index
from tests.support.stock_client import Stock, indexed

NOW = datetime(2026, 3, 1, tzinfo=UTC)
OPENINGS = "I like green tea", "My sister Anna drinks coffee", "We walked by the river"
ENDINGS = "on Sundays with Boris.", "and so does my old neighbour.", "because it was too cold.", "every day!"


@pytest.mark.parametrize(
    ("query", "texts", "other"),
    [
        ("green tea", ("I like green tea.", "I like GREEN tea!"), "I don't like green tea"),
        ("чёрный хлеб", ("Я люблю чёрный хлеб.", "я люблю черный  хлеб"), "Я не люблю чёрный хлеб"),
    ],
)
async def test_search_shows_repeated_messages_once(
    stock: Stock, mnemon_with_vectors: Deployment, query: str, texts: tuple[str, str], other: str
) -> None:
    for number, text in enumerate((*texts, other)):
        seq = await stock.say(text, id=f"m{number}")
    await indexed(stock, seq)

    reply = await stock.ask("search", query=query, scope=["messages"], limit=2)
    assert not reply["degraded"], reply
    found = {hit["id"] for hit in reply["hits"]}
    assert "m2" in found
    assert len(found & {"m0", "m1"}) == 1


async def test_search_gives_repeated_messages_the_same_scores_from_cache(
    database: Database, deployment: Deployment, tmp_path: Path
) -> None:
    talk = [f"{begin} {end}" for begin in OPENINGS for end in ENDINGS]
    deliveries = [
        Delivery(
            build_chat_subject("acme", "u1", "talk", "message"),
            MessageV1(role="user", content=talk[seq % len(talk)]).encode_body(),
            f"e{seq * 7 % 61}",
            "LOG",
            seq,
            1,
            1.8e9 + 20_000 * seq,
        )
        for seq in range(1, 61)
    ]
    await write_rows(database, plan_rows(deliveries).rows)
    located = deployment.model_copy(update={"vectors_folder": tmp_path, "qdrant_url": None})
    async with open_index(located, Embedding()) as vector_index:
        await write_batch(vector_index, plan_points(deliveries))
        memory = Memory(database, LiveSettings(), 10)
        search = Search(database, memory, vector_index)
        for text in talk:
            query = await search.embed_query(("acme", "u1"), f"Who said: {text}", NOW)
            memory.drop_user(("acme", "u1"))
            read, cached = [
                await search.find_hits(query, ("messages",), 60, 0.0, Retrieval(), explain=True)
                for _ in range(2)
            ]
            assert read.hits
            assert read.hits == cached.hits
