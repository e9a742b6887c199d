"""`update` by query changes only the fact that is meant, or none."""

import json
from typing import Any

import pytest

from mnemon_consumers.retrieve.memory.memory import Memory
from mnemon_contracts.streams import LOG
from mnemon_infra.database.engine import DatabaseUnavailable
from tests.integration.consumers.retrieve.verbs.test_forget_by_query import keep
from tests.integration.consumers.retrieve.verbs.test_tools import code
from tests.support.facts.fact_queries import FACTS, FIT, HELD, UNFIT
from tests.support.log.unconfirmed_events import store_without_confirmation
from tests.support.stock_client import Stock, indexed


async def update(stock: Stock, owner: str = "acme.u1", **request: Any) -> dict[str, Any]:
    """Send the request in version 2."""
    message = await stock.connection.request(
        f"ask.{owner}.update.v2", json.dumps(request).encode(), timeout=60
    )
    reply: dict[str, Any] = json.loads(message.data)
    return reply


async def updated_events(stock: Stock) -> int:
    """Return the number of `fact.updated` events in the log."""
    subject = "memory.acme.*.fact.updated.v1"
    info = await stock.connection.jetstream().stream_info(LOG, subjects_filter=subject)
    return sum((info.state.subjects or {}).values())


@pytest.mark.long
@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_update_by_unfitting_query_changes_nothing(stock: Stock) -> None:
    last = max([await keep(stock, language, FACTS[language]) for language in FACTS])
    await indexed(stock, last)
    for language, queries in UNFIT.items():
        for query in queries[:40]:
            reply = await update(stock, f"acme.{language}", query=query, importance="high")
            assert reply.get("fact") is None, (query, reply)
            assert (code(reply) == "not_found") != bool(reply.get("candidates")), (query, reply)
            assert len(reply.get("candidates", ())) <= 5
    assert await updated_events(stock) == 0


@pytest.mark.long
@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_update_by_fitting_query_changes_or_offers_its_fact(stock: Stock) -> None:
    last = max([await keep(stock, language, FACTS[language]) for language in FACTS])
    await indexed(stock, last)
    outcomes = []
    for language in FACTS:
        for query, place in (*FIT[language], *HELD[language]):
            reply = await update(stock, f"acme.{language}", query=query, importance="high", kind="event")
            outcomes.append(_outcome(reply, f"ar_{place:03}"))
    assert outcomes.count("wrong") == 0
    assert outcomes.count("changed") + outcomes.count("first") >= 45
    assert outcomes.count("changed") >= 30


def _outcome(reply: dict[str, Any], fact_id: str) -> str:
    if fact := reply.get("fact"):
        return "changed" if (fact["id"], fact["importance"]) == (fact_id, 9) else "wrong"
    first = (reply.get("candidates") or [{}])[0]
    return "first" if first.get("id") == fact_id else "missed"


@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_update_by_query_checks_the_new_text(stock: Stock) -> None:
    await indexed(stock, await keep(stock, "u1", ("Lives in Perm", "Keeps bees")))
    assert code(await update(stock, query="keeps bees", text="Lives in Perm")) == "refused"
    reply = await update(stock, query="keeps bees", text="Keeps three goats")
    assert (reply["fact"]["id"], reply["fact"]["text"]) == ("ar_001", "Keeps three goats")
    assert [version["text"] for version in reply["versions"]] == ["Keeps bees"]
    assert code(await update(stock, query="keeps bees", text="Keeps seven cows")) in {"not_found", None}
    assert (await stock.ask("get", id="ar_001"))["fact"]["text"] == "Keeps three goats"


@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_unconfirmed_update_by_query_names_the_fact_for_its_repetition(stock: Stock) -> None:
    await indexed(stock, await keep(stock, "u1", ("Keeps bees", "Keeps bees and goats")))
    async with store_without_confirmation(stock.connection):
        unconfirmed = (await update(stock, query="keeps bees", text="Sold the hives"))["error"]

    assert (unconfirmed["code"], unconfirmed["retryable"]) == ("unavailable", False), "it may mean ar_001 now"
    assert "the change of the fact 'ar_000' was not confirmed" in unconfirmed["message"]
    assert "repeat the request with this id" in unconfirmed["message"]
    repeated = await update(stock, id="ar_000", text="Sold the hives")
    assert repeated["fact"]["text"] == "Sold the hives"
    assert await updated_events(stock) == 1
    assert (await stock.ask("get", id="ar_001"))["fact"]["text"] == "Keeps bees and goats"


@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_update_by_query_without_its_reply_names_the_fact(
    stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any) -> None:
        raise DatabaseUnavailable("the connection was lost")

    await indexed(stock, await keep(stock, "u1", ("Keeps bees", "Keeps bees and goats")))
    with monkeypatch.context() as patch:
        patch.setattr(Memory, "load_fact_history", fail)
        failed = (await update(stock, query="keeps bees", text="Sold the hives"))["error"]

    assert (failed["code"], failed["retryable"]) == ("unavailable", False)
    assert "the change of the fact 'ar_000' was not confirmed" in failed["message"]


@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_failed_choice_of_a_fact_is_retryable(stock: Stock, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: Any) -> None:
        raise DatabaseUnavailable("the connection was lost")

    await indexed(stock, await keep(stock, "u1", ("Keeps bees",)))
    with monkeypatch.context() as patch:
        patch.setattr(Memory, "load_facts", fail)
        failed = [
            await update(stock, query="keeps bees", text="Sold the hives"),
            await stock.ask("forget", query="keeps bees"),
        ]

    assert [each["error"]["retryable"] for each in failed] == [True, True], "nothing was changed"


@pytest.mark.usefixtures("mnemon")
async def test_a_fact_is_named_once_and_version_1_goes_on(stock: Stock) -> None:
    await keep(stock, "u1", ("Keeps bees",))
    for wrong in ({}, {"id": "ar_000", "query": "bees"}):
        assert code(await update(stock, text="Keeps three goats", **wrong)) == "bad_request"
    assert code(await stock.ask("update", query="bees", text="Keeps three goats")) == "bad_request"
    assert (await stock.ask("update", id="ar_000", text="Keeps three goats"))["fact"][
        "text"
    ] == "Keeps three goats"
    assert (await update(stock, id="ar_000", text="Keeps seven cows"))["fact"]["text"] == "Keeps seven cows"
