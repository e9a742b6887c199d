"""Messages that say the same, searched from end to end."""

import pytest

from mnemon_infra.config import Deployment
from tests.support.stock_client import Stock, indexed


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
