"""Searches from end to end: publication, projection, indexing, and requests without the client of mnemon."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from mnemon_consumers.app import run_consumers
from mnemon_consumers.retrieve.search import term_statistics
from mnemon_consumers.retrieve.search.facts.links import MOST_FACTS_PER_NAME
from mnemon_consumers.retrieve.search.messages.rerank import load_weights
from mnemon_consumers.retrieve.search.scopes import facts
from mnemon_contracts.settings.groups import Embedding, Retrieval, SettingsV1
from mnemon_contracts.verbs.tools import SearchReplyV2
from mnemon_infra.broker.streams.applied_position import AppliedPosition, read_applied_position
from mnemon_infra.config import Deployment
from mnemon_infra.durables import CONSUMERS
from mnemon_infra.settings.store import write_settings
from mnemon_infra.vectors.edge.engine import Edge
from mnemon_infra.vectors.port import Collection, VectorsUnavailable
from mnemon_infra.vectors.server import QdrantServer
from mnemon_producers.client import MemoryClient
from tests.support.patience import PATIENT
from tests.support.stock_client import Stock, indexed

SPACE = "memory.acme.u1"


async def saved(stock: Stock, fact_id: str, text: str, owner: str = "acme.u1", **fact: Any) -> int:
    body = {
        "fact_id": fact_id,
        "fact": {"text": text, **fact},
        "decision": {"proposal_id": f"p-{owner}-{fact_id}"},
    }
    return await stock.publish(f"memory.{owner}.fact.saved.v1", body)


async def found(stock: Stock, query: str, owner: str = "acme.u1", **request: Any) -> list[str]:
    """Return the ids of the hits, best first."""
    reply = await stock.ask("search", owner, query=query, **request)
    assert not reply.get("error"), reply
    assert not reply["degraded"], reply
    return [hit["id"] for hit in reply["hits"]]


async def test_messages_are_found_by_words_meaning_and_neighbours(
    stock: Stock, mnemon_with_vectors: Deployment
) -> None:
    await stock.say(
        "I took my dog to the vet yesterday", name="Anna", id="vet", sent_at="2024-05-08T10:00:00Z"
    )
    await stock.say("Poor thing! What is he called?", name="Boris", id="asks", sent_at="2024-05-08T10:01:00Z")
    await stock.say("Rex.", name="Anna", id="rex", sent_at="2024-05-08T10:02:00Z")
    await stock.say("The car broke down again", name="Boris", id="car", sent_at="2024-06-01T10:00:00Z")
    seq = await stock.say("Купила билеты на поезд", name="Анна", id="билеты", sent_at="2024-09-03T10:00:00Z")
    await indexed(stock, seq)

    assert (await found(stock, "What is the name of Anna's dog?", scope=["messages"]))[0] == "vet"
    assert "rex" in await found(stock, "What is the name of Anna's dog?", scope=["messages"], limit=3)
    assert (await found(stock, "trouble with an automobile", scope=["messages"]))[0] == "car"
    assert (await found(stock, "Какой билет купили?", scope=["messages"]))[0] == "билеты"
    assert (await found(stock, "Что было в сентябре?", scope=["messages"]))[0] == "билеты"
    assert (await found(stock, "What happened on 1 June 2024?", scope=["messages"]))[0] == "car"
    assert await found(stock, "What is the name of Anna's dog?", "acme.u2", scope=["messages"]) == []
    assert await found(stock, "What is the name of Anna's dog?", "other.u1", scope=["messages"]) == []


async def test_new_message_is_found_by_its_position(stock: Stock, mnemon_with_vectors: Deployment) -> None:
    for number in range(20):
        seq = await stock.say(f"The code of room {number} is zq{number}", id=f"m{number}")

        reply = await stock.ask("search", query=f"zq{number}", scope=["messages"], limit=1, min_seq=seq)

        assert [hit["id"] for hit in reply["hits"]] == [f"m{number}"]
        assert reply["seen_seq"] >= seq


async def test_explain_returns_the_parts_of_a_score(stock: Stock, mnemon_with_vectors: Deployment) -> None:
    await indexed(stock, await stock.say("I took my dog to the vet", name="Anna", id="vet"))
    request: dict[str, Any] = {"query": "When was Anna's dog at the vet?", "scope": ["messages"]}

    (plain,) = (await stock.ask("search", **request))["hits"]
    (explained,) = (await stock.ask("search", **request, explain=True))["hits"]

    assert "parts" not in plain
    assert {"words", "meaning", "similarity"} <= explained["parts"].keys()
    assert {"terms", "cosine", "coverage", "speaker", "session"} <= explained["parts"].keys()
    assert 0 < plain["score"] <= 1


async def test_removed_content_is_not_found_after_the_reply(
    stock: Stock, mnemon_with_vectors: Deployment
) -> None:
    await stock.say("The secret garden is behind the house", id="garden")
    await indexed(stock, await saved(stock, "ar_001", "Anna has a secret garden"))
    scope = ["memories", "messages"]
    assert sorted(await found(stock, "secret garden", scope=scope)) == ["ar_001", "garden"]

    cleared = await stock.publish("chat.acme.u1.-.cleared.v1")
    assert await found(stock, "secret garden", scope=scope, min_seq=cleared) == ["ar_001"]
    forgotten = await stock.publish(f"{SPACE}.fact.forgotten.v1", {"fact_id": "ar_001"})
    assert await found(stock, "secret garden", scope=scope, min_seq=forgotten) == []


async def test_facts_fade_expire_and_keep_a_threshold(stock: Stock, mnemon_with_vectors: Deployment) -> None:
    now = datetime.now(UTC)
    await saved(stock, "ar_001", "Anna plays the violin in an orchestra")
    await saved(stock, "pf_001", "Anna is allergic to nuts", tier="profile", importance=9)
    await saved(stock, "ar_002", "Anna plays chess", expires_at=(now - timedelta(days=1)).isoformat())
    await indexed(stock, await saved(stock, "ar_003", "Boris drives a lorry"))

    assert (await found(stock, "Which instrument does Anna play?"))[0] == "ar_001"
    assert "ar_002" not in await found(stock, "Does Anna play chess?", limit=100)
    assert await found(stock, "violin orchestra", threshold=0.5) == ["ar_001"]
    assert await found(stock, "violin orchestra", threshold=1.0) == []
    assert await found(stock, "photosynthesis of algae") == []


@pytest.mark.parametrize(
    ("texts", "names", "query"),
    [
        (
            ["My sister's dog answers to rex", "At the lake rex swam", "Hates early mornings"],
            [["rex"], ["rex"], []],
            "my sister's dog",
        ),
        (
            ["Сестра подарила щенка по кличке Бим", "Бим спит на диване", "Не ест рыбу"],
            [[], [], []],
            "Кого подарила сестра?",
        ),
    ],
    ids=["extracted by a model", "found by rules"],
)
async def test_search_follows_a_name_from_fact_to_fact(
    stock: Stock,
    mnemon_with_vectors: Deployment,
    texts: list[str],
    names: list[list[str]],
    query: str,
) -> None:
    for number, (text, extracted) in enumerate(zip(texts, names, strict=True), 1):
        seq = await saved(stock, f"ar_00{number}", text, names=extracted)
    await indexed(stock, seq)

    hits = (await stock.ask("search", query=query, explain=True))["hits"]

    assert [hit["id"] for hit in hits][:2] == ["ar_001", "ar_002"]
    linked = {hit["id"] for hit in hits if "link" in hit["parts"]}
    assert "ar_002" in linked
    assert "ar_003" not in linked


async def test_search_weighs_query_by_counted_rarity(
    stock: Stock, mnemon_with_vectors: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(term_statistics, "SUFFICIENT_TEXTS", 20)
    engine = QdrantServer if mnemon_with_vectors.qdrant_url else Edge
    search = engine.search
    searched: dict[Collection, bool] = {}

    async def record_search(
        self: Any, collection: Any, owner: Any, queries: Any, *args: Any, **options: Any
    ) -> Any:
        searched[collection] = queries[0].has_rarity
        return await search(self, collection, owner, queries, *args, **options)

    monkeypatch.setattr(engine, "search", record_search)
    await saved(stock, "ar_rare", "A zeppelin flew by")
    await saved(stock, "ar_often", "The garden is large")
    await saved(stock, "ar_other", "A zeppelin flew by", owner="globex.u1")
    await saved(stock, "ar_sister", "My sister has a boat named Green Arrow")
    await saved(stock, "ar_arrow", "The Green Arrow is a yacht")
    for number in range(20):
        await saved(stock, f"ar_{number}", f"Garden number {number}", owner="acme.u2")
        await saved(stock, f"ar_{number}", f"Zeppelin number {number}", owner="globex.u2")
    await stock.publish("memory.acme.u1.document.added.v1", {"document_id": "d1", "text": "A zeppelin"})
    await indexed(stock, await stock.say("The garden", id="said"))
    scopes = ["memories", "messages", "documents"]

    async with asyncio.timeout(30):
        while not searched.get(Collection.MEMORIES):
            hits = (await stock.ask("search", query="garden zeppelin", scope=scopes, explain=True))["hits"]

    assert searched[Collection.MESSAGES] is True
    assert searched[Collection.DOCUMENTS] is False, "documents are not counted"
    words = {hit["id"]: hit["parts"]["words"] for hit in hits}
    assert words["ar_rare"] > 2 * words["ar_often"]
    assert await found(stock, "my sister") == ["ar_sister", "ar_arrow"], "a name of two words is weighed, too"


@pytest.mark.parametrize("is_slow", [True, False])
async def test_facts_are_found_without_links_if_the_search_of_names_fails(
    stock: Stock, mnemon_with_vectors: Deployment, monkeypatch: pytest.MonkeyPatch, is_slow: bool
) -> None:
    await saved(stock, "ar_001", "My sister has a dog named Rex")
    await indexed(stock, await saved(stock, "ar_002", "Rex is a Labrador"))
    assert await found(stock, "my sister") == ["ar_001", "ar_002"]
    engine = QdrantServer if mnemon_with_vectors.qdrant_url else Edge
    search = engine.search

    async def search_all_but_names(
        self: Any, collection: Any, owner: Any, queries: Any, limit: int, *args: Any, **options: Any
    ) -> Any:
        if limit != MOST_FACTS_PER_NAME + 1:
            return await search(self, collection, owner, queries, limit, *args, **options)
        if is_slow:
            await asyncio.Event().wait()
        raise VectorsUnavailable("the store is gone")

    monkeypatch.setattr(engine, "search", search_all_but_names)
    monkeypatch.setattr(facts, "LINKS_WAIT", 0.1)
    with capture_logs() as logs:
        assert await found(stock, "my sister") == ["ar_001"]

    (warning,) = [each for each in logs if each["event"] == "name search failed, leaving out links"]
    assert ("within 0.1 s" if is_slow else "gone") in warning["error"]


async def test_name_in_many_facts_is_searched_for_once_a_minute(
    stock: Stock, mnemon_with_vectors: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = QdrantServer if mnemon_with_vectors.qdrant_url else Edge
    search, searched = engine.search, []

    async def record_names(
        self: Any, collection: Any, owner: Any, queries: Any, limit: int, *args: Any, **options: Any
    ) -> Any:
        if limit == MOST_FACTS_PER_NAME + 1:
            searched.append(len(queries))
        return await search(self, collection, owner, queries, limit, *args, **options)

    monkeypatch.setattr(engine, "search", record_names)
    for number in range(MOST_FACTS_PER_NAME + 1):
        await saved(stock, f"ar_{number:03}", f"Oleg likes dish {number}")
    await saved(stock, "ar_dog", "My sister and Oleg have a dog named Rex")
    await indexed(stock, await saved(stock, "ar_rex", "Rex is a Labrador"))

    for _ in range(2):
        assert {"ar_dog", "ar_rex"} <= {*await found(stock, "my sister")}
    assert searched == [2, 1], "Oleg and Rex, then Rex"
    memory = MemoryClient(stock.connection, tenant="acme", timeouts=PATIENT)
    assert (await memory.search("u1", "my sister", scope=["long"])).hits
    assert searched == [2, 1, 2], "a filter of facts may make the name rare"


async def test_settings_supply_omitted_request_fields(stock: Stock, mnemon_with_vectors: Deployment) -> None:
    for number in range(1, 8):
        seq = await saved(stock, f"ar_{number:03}", f"Anna has {number} cats")
    await indexed(stock, seq)
    assert len(await found(stock, "Anna's cats")) == 5

    await write_settings(stock.connection, SettingsV1(retrieval=Retrieval(limit=2)))

    async with asyncio.timeout(60):
        while len(await found(stock, "Anna's cats")) != 2:
            await asyncio.sleep(0.02)
    assert len(await found(stock, "Anna's cats", limit=6)) == 6
    memory = MemoryClient(stock.connection, tenant="acme", timeouts=PATIENT)
    assert len((await memory.search("u1", "Anna's cats")).hits) == 2
    assert len((await memory.search("u1", "Anna's cats", limit=6)).hits) == 6
    by_tool = await memory.call("u1", "memory_search", {"query": "Anna's cats"})
    assert len(by_tool.model_dump()["hits"]) == 2
    await indexed(stock, await stock.say("I saw Anna's cats", id="said"))
    assert len(await found(stock, "Anna's cats", scope=["memories", "messages"])) == 2


async def test_days_of_a_query_begin_in_the_zone_of_the_tenant(
    stock: Stock, mnemon_with_vectors: Deployment
) -> None:
    """At noon of 21 November in UTC, it is 22 November in Kiritimati."""
    await indexed(stock, await stock.say("Rex is ill", id="rex", sent_at="2025-11-21T12:00:00Z"))
    request: dict[str, Any] = {"query": "Who was ill on 22 November 2025?", "scope": ["messages"]}

    async def measure_date() -> float:
        (hit,) = (await stock.ask("search", **request, explain=True))["hits"]
        return float(hit["parts"]["date"])

    inside = round(load_weights().date, 4)
    assert await measure_date() < inside

    await write_settings(
        stock.connection, SettingsV1.create_strict(time_stamps={"zone": "Pacific/Kiritimati"})
    )

    async with asyncio.timeout(30):
        while await measure_date() != inside:
            await asyncio.sleep(0.02)


async def test_fact_is_found_by_another_form_of_a_name(stock: Stock, mnemon_with_vectors: Deployment) -> None:
    for number in range(40):
        await saved(stock, f"f{number}", f"Neighbour {number} lives in house {number}")
    await indexed(stock, await saved(stock, "robert", "Robert moved to Leeds"))

    assert "robert" in await found(stock, "What about Bob?", scope=["memories"])


@pytest.mark.parametrize(
    ("query", "fact"),
    [("Where do I live?", "Moved to Leeds"), ("Где я живу?", "Переехал в Казань")],
)
async def test_home_is_found_by_a_move(
    stock: Stock, mnemon_with_vectors: Deployment, query: str, fact: str
) -> None:
    for number in range(40):
        await saved(stock, f"f{number}", f"Likes book {number}, читает книгу {number}")
    await indexed(stock, await saved(stock, "home", fact))

    assert await found(stock, query, scope=["memories"]) == ["home"]


async def test_a_question_about_a_period_finds_its_messages(
    stock: Stock, mnemon_with_vectors: Deployment
) -> None:
    """No message of the period has a word of the question, and there are many older messages without one."""
    now = datetime.now(UTC)
    for number in range(100):
        at = (now - timedelta(days=20 + number)).isoformat()
        await stock.publish(
            "chat.acme.u1.-.message.v1", {"role": "user", "content": f"Old {number}", "sent_at": at}
        )
    yesterday = (now - timedelta(days=1)).isoformat()
    await stock.say("The boiler broke down", name="Anna", id="boiler", sent_at=yesterday)
    seq = await stock.say("Соседи затопили кухню", name="Anna", id="кухня", sent_at=yesterday)
    await indexed(stock, seq)

    for query in "What happened yesterday?", "Что было вчера?", "What did Anna say yesterday?":
        assert set(await found(stock, query, scope=["messages"])) == {"boiler", "кухня"}
    both = await found(stock, "What happened yesterday?", scope=["messages"], threshold=0.3)
    assert set(both) == {"boiler", "кухня"}
    assert await found(stock, "What happened yesterday?", "acme.u2", scope=["messages"]) == []


@pytest.mark.parametrize(
    ("now", "expected"), [("2023-05-09T12:00:00Z", "boiler"), ("2023-06-20T12:00:00+03:00", "roof")]
)
async def test_times_in_a_query_are_relative_to_the_given_time(
    stock: Stock, mnemon_with_vectors: Deployment, now: str, expected: str
) -> None:
    for name, at in ("boiler", "2023-05-03T10:00:00Z"), ("roof", "2023-06-14T10:00:00Z"):
        seq = await stock.say(f"The {name} broke down", id=name, sent_at=at)
    await indexed(stock, seq)

    for query in "What happened last week?", "Что было на прошлой неделе?":
        assert await found(stock, query, scope=["messages"], now=now) == [expected]
    reply = await stock.ask("context", query="What happened last week?", now=now, conversation="another")
    shown = " ".join(message["content"] for message in reply["messages"])
    assert re.findall("The (.+) broke down", shown) == [expected]


@pytest.mark.parametrize("name", ["Anna", "Tomasz"])
async def test_a_question_about_a_period_is_not_answered_by_its_words_at_another_time(
    stock: Stock, mnemon_with_vectors: Deployment, name: str
) -> None:
    """Anna is a known given name, and Tomasz is none."""
    now = datetime.now(UTC)
    old, yesterday = ((now - timedelta(days=days)).isoformat() for days in (4, 1))
    await stock.say("I met a nice restorer yesterday", name=name, id="restorer", sent_at=old)
    seq = await stock.say("Boiled eggs again", name=name, id="eggs", sent_at=yesterday)
    await indexed(stock, seq)

    hits = await found(stock, f"What did {name} do yesterday?", scope=["messages"], threshold=0)

    assert hits == ["eggs", "restorer"]


@pytest.mark.parametrize(
    "query",
    [
        "What happened yesterday, and in 2019?",
        pytest.param(
            "What happened yesterday, on 1 May, on 2 May, on 3 May, and on 4 May 2019?",
            marks=pytest.mark.long,
        ),
        pytest.param("Что случилось вчера и в 2019 году?", marks=pytest.mark.long),
    ],
)
async def test_a_question_about_too_long_or_too_many_periods_is_searched_by_words(
    stock: Stock, mnemon_with_vectors: Deployment, query: str
) -> None:
    yesterday = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    await stock.say("The boiler broke down / Сломался котёл", id="boiler", sent_at=yesterday)
    text = "An accident happened at the bridge / Случилась авария на мосту"
    await indexed(stock, await stock.say(text, id="bridge", sent_at="2019-05-04T10:00:00Z"))

    assert "bridge" in await found(stock, query, scope=["messages"])


@pytest.mark.parametrize(
    ("query", "before", "unrelated"),
    [
        (
            "and when was that?",
            ["Did Anna pass her driving test?", "Yes, she did."],
            "Where does Boris cook?",
        ),
        ("а когда это было?", ["Анна сдала экзамен на права?", "Да, сдала."], "Где Борис варит борщ?"),
    ],
)
async def test_follow_up_is_resolved_by_the_messages_before_it(
    stock: Stock, mnemon_with_vectors: Deployment, query: str, before: list[str], unrelated: str
) -> None:
    texts = {
        "test": ("Anna passed her driving test in February", "В феврале Анна сдала экзамен на права"),
        "soup": ("Boris cooks soup on Sundays", "По воскресеньям Борис варит борщ"),
        "trip": ("The ferry to Riga leaves in the morning", "Паром в Ригу уходит утром"),
    }
    for name, spoken in texts.items():
        await saved(stock, f"pf_{name}", " / ".join(spoken))
        await stock.say(" / ".join(spoken), id=name)
    seq = await stock.publish(
        f"{SPACE}.document.added.v1", {"document_id": "d1", "text": " / ".join(texts["test"])}
    )
    await indexed(stock, seq)
    memory = MemoryClient(stock.connection, tenant="acme", timeouts=PATIENT)

    async def ask(query: str, preceding: list[str]) -> SearchReplyV2:
        return await memory.search(
            "u1", query, scope=("memories", "messages", "documents"), preceding=preceding, explain=True
        )

    found, alone = await ask(query, before), await ask(query, [])

    best = {hit.scope: hit.id for hit in reversed(found.hits)}
    assert best == {"memories": "pf_test", "messages": "test", "documents": "d1"}
    assert {hit.parts["preceding"] for hit in found.hits if hit.parts} == {1.0}
    assert found.hits[0].score > max((hit.score for hit in alone.hits), default=0.0)
    assert all("preceding" not in (hit.parts or ()) for hit in alone.hits)

    whole = " ".join(before)
    assert (await ask(whole, [unrelated])).hits == (await ask(whole, [])).hits


async def test_documents_are_found_by_their_pieces(stock: Stock, mnemon_with_vectors: Deployment) -> None:
    filler = "\n\n".join(
        f"Paragraph {number} is about gardening and the weather." * 10 for number in range(5)
    )
    text = f"{filler}\n\nThe boiler is switched off with the red lever.\n\n{filler}"
    added = {"document_id": "house", "title": "The house", "text": text}
    await indexed(stock, await stock.publish(f"{SPACE}.document.added.v1", added))

    (best, *_) = (await stock.ask("search", query="How is the boiler switched off?", scope=["documents"]))[
        "hits"
    ]
    assert best["id"] == "house"
    assert "red lever" in best["text"]
    assert len(best["text"]) < len(text) / 2

    removed = await stock.publish(f"{SPACE}.document.removed.v1", {"document_id": "house"})
    assert await found(stock, "boiler", scope=["documents"], min_seq=removed) == []


async def test_a_piece_of_a_former_version_is_not_cut_from_the_new_text(
    stock: Stock, vectors_deployment: Deployment
) -> None:
    former = "The boiler is switched off with the red lever in the cellar."
    async with run_consumers(("persist", "index", "dedupe", "retrieve"), vectors_deployment):
        added = {"document_id": "house", "text": former}
        await indexed(stock, await stock.publish(f"{SPACE}.document.added.v1", added))
        assert await found(stock, "boiler", scope=["documents"]) == ["house"]
    # `index` is stopped, so the points still name the places of words in the former text.
    async with run_consumers(("persist", "retrieve"), vectors_deployment):
        added = {"document_id": "house", "text": "A garden with many trees, and nothing besides. " * 3}
        seq = await stock.publish(f"{SPACE}.document.added.v1", added)
        stream_context = stock.connection.jetstream()
        async with asyncio.timeout(60):
            while await read_applied_position(stream_context) < seq:
                await asyncio.sleep(0.02)
        assert await found(stock, "boiler", scope=["documents"]) == []


@pytest.mark.parametrize(
    "scope", ["messages", *(pytest.param(each, marks=pytest.mark.long) for each in ("memories", "documents"))]
)
async def test_search_returns_the_requested_number_of_hits(
    stock: Stock, mnemon_with_vectors: Deployment, scope: str
) -> None:
    """More items match than a search considers by default; no message is a neighbour of another one."""
    many = 50
    for number in range(many):
        text = f"The walnut of number {number} is ripe"
        if scope == "memories":
            seq = await saved(stock, f"ar_{number:03}", text)
        elif scope == "messages":
            seq = await stock.say(text, f"acme.u1.c{number}", id=f"m{number}")
        else:
            added = {"document_id": f"d{number}", "text": text}
            seq = await stock.publish(f"{SPACE}.document.added.v1", added)
    await indexed(stock, seq)
    assert len(set(await found(stock, "walnut", scope=[scope], limit=45))) == 45


async def test_search_filters_by_collection(stock: Stock, mnemon_with_vectors: Deployment) -> None:
    for name, fields in {
        "a": {"collection": "kitchen"},
        "b": {"collection": "garden", "origin": "repository"},
        "c": {},
    }.items():
        text = f"The kettle is in place {name}.\nIt is red."
        reply = await stock.ask("document", action="add", document_id=name, text=text, **fields)
    await indexed(stock, reply["seen_seq"])
    assert set(await found(stock, "kettle", scope=["documents"])) == {"a", "b", "c"}
    assert await found(stock, "kettle", scope=["documents"], collection="kitchen") == ["a"]
    assert await found(stock, "kettle", collection="garden") == ["b"], "without a scope: documents"
    assert await found(stock, "kettle", origin="repository") == ["b"]
    assert await found(stock, "kettle", collection="attic") == []
    (hit,) = (await stock.ask("search", query="kettle", collection="kitchen"))["hits"]
    assert hit["passage"] == {"collection": "kitchen", "first_line": 1, "last_line": 2}


async def test_without_an_embedder_words_are_searched_for(
    stock: Stock, vectors_deployment: Deployment
) -> None:
    await write_settings(stock.connection, SettingsV1(embedding=Embedding(provider="none")))
    async with run_consumers(CONSUMERS, vectors_deployment):
        await stock.say("I took my dog to the vet", id="vet")
        await stock.say("Собаки лаяли всю ночь", id="собаки")
        await indexed(stock, await saved(stock, "ar_001", "Anna has a dog"))

        assert (await found(stock, "dogs", scope=["messages"]))[0] == "vet"
        assert await found(stock, "dogs") == ["ar_001"]
        assert (await found(stock, "собака", scope=["messages"]))[0] == "собаки"
        assert await found(stock, "trouble with an automobile", scope=["messages"]) == []


async def test_search_without_vectors_is_empty_and_degraded(stock: Stock, deployment: Deployment) -> None:
    async with run_consumers(("persist", "retrieve"), deployment):
        reply = await stock.ask("search", query="dogs", scope=["memories", "documents"])

    assert reply["degraded"] == ["memories", "documents"]
    assert reply["hits"] == []


async def test_a_huge_message_is_found_and_shown_in_part(
    stock: Stock, mnemon_with_vectors: Deployment
) -> None:
    huge = "The ferry to Bergen leaves at noon. " + "So it goes. " * 20_000
    await indexed(stock, await stock.say(huge, id="huge"))

    (hit,) = (await stock.ask("search", query="ferry to Bergen", scope=["messages"]))["hits"]

    assert hit["text"] == f"{huge[:3999]}…"


async def test_a_position_that_is_never_reached_is_waited_for_once(
    stock: Stock, mnemon_with_vectors: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write_settings(stock.connection, SettingsV1(wait_for_log_ms=800))
    end = await indexed(stock, await stock.say("The ferry leaves at noon", id="ferry"))
    scope = ["memories", "messages", "documents"]
    await stock.ask("search", query="ferry", scope=scope)

    wait_for = AppliedPosition.wait_for
    waits: list[str] = []

    async def record_wait(self: AppliedPosition, *bounds: Any) -> int:
        waits.append("begun")
        position = await wait_for(self, *bounds)
        waits.append("ended")
        return position

    monkeypatch.setattr(AppliedPosition, "wait_for", record_wait)
    reply = await stock.ask("search", query="ferry", scope=scope, min_seq=end + 1000)

    assert waits, "the request waits"
    assert waits == sorted(waits), "no wait begins after another has ended"
    assert [hit["id"] for hit in reply["hits"]] == ["ferry"]


RUSSIAN_FACTS = (
    "Пользователь живёт в Казани",
    "Пользователь работает бухгалтером в строительной фирме",
    "У пользователя есть собака по кличке Буран",
    "Пользователь не ест мясо",
    "Дочь пользователя зовут Алиса, она учится в третьем классе",
    "Пользователь занимается плаванием по средам",
    "У пользователя аллергия на пыльцу берёзы",
    "Пользователь ездит на синей «Ладе»",
    "Муж пользователя служит пожарным",
    "Пользователь учит испанский язык",
    "Пользователь собирается в отпуск в Армению в июне",
    "Пользователь пьёт чай без сахара",
    "Пользователь родился двенадцатого марта",
    "Пользователь играет на виолончели",
    "Пользователь снимает квартиру на пятом этаже",
)


async def test_russian_question_without_an_answer_finds_no_fact(
    stock: Stock, mnemon_with_vectors: Deployment
) -> None:
    for number, text in enumerate(RUSSIAN_FACTS):
        seq = await saved(stock, f"pf_{number:03}", text)
    await indexed(stock, seq)

    answered = {
        "В каком городе я живу?": 0,
        "Кем я работаю?": 1,
        "Как зовут моего пса?": 2,
        "Какая у меня машина?": 7,
        "Чем занимается мой супруг?": 8,
        "На каком инструменте я играю?": 13,
        "Which language do I learn?": 9,
    }
    for question, number in answered.items():
        assert f"pf_{number:03}" in (await found(stock, question))[:3], question
    for question in ("Какой у меня рост?", "Верю ли я в гороскопы?", "За кого я голосовал?"):
        assert await found(stock, question) == [], question
