"""`forget` by query, with all consumers: it removes only the fact that is meant, which can be restored."""

import asyncio
import threading
from typing import Any

import pytest

from mnemon_consumers.domain.alignment.query.fact_fit import choose_fact
from mnemon_consumers.retrieve.memory.eager_projection import EagerProjection
from mnemon_consumers.retrieve.verbs.facts import query as fact_query
from mnemon_contracts.streams import LOG
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, DatabaseUnavailable
from mnemon_infra.database.locks import hold_lock
from tests.integration.consumers.retrieve.verbs.test_tools import code, ids
from tests.integration.mnemon.rebuild.test_redecide import waits_for_lock
from tests.support.facts.fact_queries import FACTS, FIT, HELD, UNFIT
from tests.support.log.unconfirmed_events import store_without_confirmation
from tests.support.stock_client import Stock, indexed


async def keep(stock: Stock, user: str, texts: tuple[str, ...]) -> int:
    """Publish facts of a user as `dedupe` does; return the last log position."""
    positions = await asyncio.gather(
        *(
            stock.publish(
                f"memory.acme.{user}.fact.saved.v1",
                {
                    "fact_id": f"ar_{place:03}",
                    "fact": {"text": text},
                    "decision": {"proposal_id": f"p-{user}-{place}"},
                },
            )
            for place, text in enumerate(texts)
        )
    )
    return max(positions)


async def forgotten_events(stock: Stock) -> int:
    """Return the number of `fact.forgotten` events in the log."""
    subject = "memory.acme.*.fact.forgotten.v1"
    info = await stock.connection.jetstream().stream_info(LOG, subjects_filter=subject)
    return sum((info.state.subjects or {}).values())


@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_undecided_forget_by_query_names_the_fact_for_its_repetition(
    stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any) -> None:
        raise DatabaseUnavailable("the connection was lost")

    await indexed(stock, await keep(stock, "u1", ("Allergic to nuts", "Allergic to nuts and shellfish")))
    with monkeypatch.context() as patch:
        patch.setattr(EagerProjection, "project_event", fail)
        undecided = (await stock.ask("forget", query="allergic to nuts"))["error"]

    assert (undecided["code"], undecided["retryable"]) == ("unavailable", False), "a query may mean the other"
    assert "the removal of the fact 'ar_000' was not confirmed" in undecided["message"]
    repeated = await stock.ask("forget", id="ar_000")
    assert repeated["error"]["code"] == "not_found"
    assert await ids(stock) == ["ar_001"]


@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_unconfirmed_forget_by_query_names_the_fact_for_its_repetition(stock: Stock) -> None:
    await indexed(stock, await keep(stock, "u1", ("Allergic to nuts", "Allergic to nuts and shellfish")))
    async with store_without_confirmation(stock.connection):
        unconfirmed = (await stock.ask("forget", query="allergic to nuts"))["error"]

    assert (unconfirmed["code"], unconfirmed["retryable"]) == ("unavailable", False)
    assert "the removal of the fact 'ar_000' was not confirmed" in unconfirmed["message"]
    assert code(await stock.ask("forget", id="ar_000")) == "not_found"
    assert await ids(stock) == ["ar_001"]


@pytest.mark.long
@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_forget_by_200_unfitting_queries_removes_nothing(stock: Stock) -> None:
    users = {(language, number): f"{language}{number}" for language in FACTS for number in range(1, 31)}
    last = 0
    for (language, number), user in users.items():
        last = max(last, await keep(stock, user, FACTS[language][:number]))
    await indexed(stock, last)

    asked = 0
    for language, queries in UNFIT.items():
        for place, query in enumerate(queries):
            number = place % 30 + 1
            reply = await stock.ask("forget", f"acme.{users[language, number]}", query=query)
            assert reply.get("id") is None, (query, reply)
            assert (code(reply) == "not_found") != bool(reply.get("candidates")), (query, reply)
            assert len(reply.get("candidates", ())) <= 5
            asked += 1

    assert asked == 200
    assert await forgotten_events(stock) == 0
    for (_, number), user in users.items():
        assert len(await ids(stock, owner=f"acme.{user}")) == number


@pytest.mark.long
@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_forget_by_50_fitting_queries_removes_or_offers_their_fact(stock: Stock) -> None:
    last = max([await keep(stock, language, FACTS[language]) for language in FACTS])
    await indexed(stock, last)
    outcomes = []
    for language in FACTS:
        for query, place in (*FIT[language], *HELD[language]):
            reply = await stock.ask("forget", f"acme.{language}", query=query)
            outcomes.append(outcome(reply, f"ar_{place:03}", FACTS[language][place]))
    assert len(outcomes) == 50
    assert outcomes.count("wrong") == 0
    assert outcomes.count("removed") + outcomes.count("first") >= 45
    assert await forgotten_events(stock) == outcomes.count("removed") >= 30


def outcome(reply: dict[str, Any], fact_id: str, text: str) -> str:
    if reply.get("id"):
        return "removed" if (reply["id"], reply["text"]) == (fact_id, text) else "wrong"
    first = (reply.get("candidates") or [{}])[0]
    return "first" if first.get("id") == fact_id else "missed"


@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_forget_candidates_list_ids_texts_and_scores(stock: Stock) -> None:
    await indexed(
        stock, await keep(stock, "u1", ("Likes green tea", "Likes green tea with milk", "Keeps bees"))
    )
    reply = await stock.ask("forget", query="green tea")
    assert [(each["id"], each["text"]) for each in reply["candidates"]] == [
        ("ar_000", "Likes green tea"),
        ("ar_001", "Likes green tea with milk"),
    ]
    scores = [each["score"] for each in reply["candidates"]]
    assert scores == sorted(scores, reverse=True)
    assert all(0 < score <= 1 for score in scores)
    assert not {"id", "text", "restore", "error"} & set(reply)
    chosen = await stock.ask("forget", id=reply["candidates"][1]["id"])
    assert (chosen["id"], chosen["text"]) == ("ar_001", "Likes green tea with milk")
    assert await ids(stock) == ["ar_002", "ar_000"]


@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_forget_reply_restores_the_fact(stock: Stock) -> None:
    saved = await stock.ask(
        "save",
        text="Анна летит в Рим с двумя пересадками",
        kind="event",
        tier="working",
        importance="high",
        expires_at="2200-01-01T00:00:00Z",
    )
    before = (await stock.ask("get", id=saved["id"], min_seq=saved["seen_seq"]))["fact"]
    forgotten = await stock.ask("forget", query="Анна летит в Рим")
    assert (forgotten["id"], forgotten["text"]) == (saved["id"], before["text"])
    assert await ids(stock) == []

    restored = await stock.ask("save", **forgotten["restore"])
    assert restored["decision"] == "saved"
    assert restored["id"] != saved["id"], "an id is never given twice"
    after = (await stock.ask("get", id=restored["id"], min_seq=restored["seen_seq"]))["fact"]
    for fact in (before, after):
        fact.pop("id")
        fact.pop("saved_at")
    assert after == before


@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_query_names_no_expired_fact(stock: Stock) -> None:
    past = {"text": "Is in Rome", "tier": "working", "expires_at": "2020-01-01T00:00:00Z"}
    body = {"fact_id": "wk_001", "fact": past, "decision": {"proposal_id": "p"}}
    await indexed(stock, await stock.publish("memory.acme.u1.fact.saved.v1", body))
    assert code(await stock.ask("forget", query="is in Rome")) == "not_found"
    by_id = await stock.ask("forget", id="wk_001")
    assert (by_id["id"], by_id["text"], by_id.get("restore")) == ("wk_001", "Is in Rome", None)


@pytest.mark.usefixtures("mnemon_with_vectors")
async def test_others_are_answered_while_a_query_is_compared(
    stock: Stock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison of many or long facts takes seconds."""
    begun, answered = threading.Event(), threading.Event()

    def choose_slowly(*given: Any) -> Any:
        begun.set()
        assert answered.wait(30), "the comparison blocks other requests"
        return choose_fact(*given)

    monkeypatch.setattr(fact_query, "choose_fact", choose_slowly)
    await indexed(stock, await keep(stock, "u1", ("Likes green tea",)))
    forgetting = asyncio.create_task(stock.ask("forget", "acme.u1", query="green tea"))
    assert await asyncio.to_thread(begun.wait, 30)
    assert "error" not in await stock.ask("context", "globex.eva")
    answered.set()
    assert (await forgetting)["id"] == "ar_000"


@pytest.mark.parametrize(
    ("verb", "request_of"),
    [
        ("forget", {"id": "ar_000"}),
        ("forget", {"query": "I like green tea"}),
        ("update", {"id": "ar_000", "text": "I like black tea"}),
    ],
    ids=["forget by id", "forget by query", "update"],
)
async def test_no_fact_is_changed_while_the_user_s_proposals_are_decided(
    mnemon_with_vectors: Deployment, stock: Stock, verb: str, request_of: dict[str, str]
) -> None:
    async def changes() -> int:
        info = await stock.connection.jetstream().stream_info(LOG, subjects_filter="memory.acme.u1.fact.>")
        return sum((info.state.subjects or {}).values())

    await indexed(stock, await keep(stock, "u1", ("I like green tea",)))
    async with Database(mnemon_with_vectors) as database:
        async with hold_lock(database, "acme", "u1"):
            asked = asyncio.create_task(stock.ask(verb, **request_of))
            while not await waits_for_lock(database):
                assert not asked.done()
            assert await changes() == 1
        assert code(await asked) is None
    assert await changes() == 2
