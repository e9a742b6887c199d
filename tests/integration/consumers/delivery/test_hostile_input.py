"""Hostile ids, headers and bodies harm only the event that contains them."""

import asyncio
import socket
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import pytest
from nats.aio.client import Client
from pydantic import JsonValue

from mnemon.operations.audit.ledger import Audit
from mnemon.operations.audit.run import run_audit
from mnemon.operations.rebuild.live_vectors import open_live_pages
from mnemon_consumers.app import run_consumers
from mnemon_contracts.identity import MESSAGE_ID, derive_point_id
from mnemon_contracts.streams import DEAD, LOG
from mnemon_contracts.subjects import find_origin
from mnemon_infra.broker.provisioning.topology import reset_durable
from mnemon_infra.broker.streams.applied_position import read_log_end
from mnemon_infra.broker.streams.log_reader import read_event_pages
from mnemon_infra.config import Deployment
from mnemon_infra.database.audit.events import UserSample
from mnemon_infra.rebuild.generations import open_site
from mnemon_infra.vectors.engines import open_vectors, reset_vectors
from mnemon_infra.vectors.generations import read_model_record
from mnemon_infra.vectors.port import Collection, Point
from tests.support.admin.http_browser import browsing
from tests.support.log.dead_letters import kept
from tests.support.stock_client import Stock, indexed, persisted

SAID: Final = b'{"role":"user","content":"the otter swims"}'
MESSAGE: Final = "chat.acme.ana.-.message.v1"
UNSTORABLE: Final = "refused_by_database"
NOTHING: Final = {"log": 0, "dead_letters": 0, "work": 0, "database": 0, "model_batches": 0, "vectors": 0}


class Hostile(NamedTuple):
    """A hostile message, with the reason and a part of its dead letter, which are "" if it is applied."""

    name: str
    reason: str = ""
    names: str = ""
    subject: str = MESSAGE
    body: bytes = SAID
    headers: Mapping[str, str] = {}


def _message_id(name: str, value: str, names: str = "") -> Hostile:
    return Hostile(name, names and "invalid_body", names, headers={MESSAGE_ID: value})


def _subject(name: str, subject: str, names: str = "", reason: str = "invalid_subject") -> Hostile:
    return Hostile(name, reason, names, subject)


def _body(name: str, body: bytes, names: str = "", reason: str = "invalid_body") -> Hostile:
    return Hostile(name, reason if names else "", names, body=body)


HOSTILE: Final = (
    _message_id("U+0000 within an id", "a\0b", MESSAGE_ID),
    _message_id("U+0000 alone", "\0", MESSAGE_ID),
    _message_id("an id beyond the limit", "x" * 256, MESSAGE_ID),
    _message_id("an id beyond the limit in bytes", "Ж" * 128, MESSAGE_ID),
    _message_id("an id of 60 kilobytes", "x" * 60_000, MESSAGE_ID),
    _message_id("control characters", "a\x01\x1f\x7fb"),
    _message_id("white space at both ends", " \t id \t "),
    _message_id("a line break, which a client folds", "a\nNats-Expected-Stream: b"),
    _message_id("SQL", "'; DROP TABLE messages; --"),
    _message_id("a format string", "%s%n{0}${jndi}"),
    _message_id("escapes of a terminal", "\x1b[2J\x1b]0;x\x07"),
    _message_id("a right-to-left override", "\u202eabc"),
    _message_id("no characters", "\ufffe\uffff"),
    _message_id("an id like a log position", "LOG:1"),
    _message_id("JSON", '{"id": "x", "a": [1]}'),
    Hostile("U+0000 in another header", headers={"X-Bot": "a\0b"}),
    Hostile("a trace that is none", headers={"traceparent": "00-\0-zz"}),
    Hostile("headers of a dead letter", headers={"Mnemon-Stream": "LOG", "Mnemon-Sequence": "\0"}),
    Hostile("headers of a direct read", headers={"Nats-Subject": "chat.x.y", "Nats-Sequence": "nine"}),
    Hostile("a large header", headers={"X-Large": "x" * 50_000}),
    _subject("a user in another spelling", "chat.acme.an%61.-.message.v1", "an%61"),
    _subject("a tenant in another spelling", "chat.%61cme.ana.-.message.v1", "%61cme"),
    _subject("a conversation in another spelling", "chat.acme.ana.tri%70.message.v1", "tri%70"),
    _subject("lower-case hexadecimal digits", "chat.acme.%c3%a9.-.message.v1", "é"),
    _subject("half an escape", "chat.acme.ana%.-.message.v1", "ana%"),
    _subject("half a character", "chat.acme.%C3.-.message.v1", "%C3"),
    _subject("a lone surrogate, encoded", "chat.acme.%ED%A0%80.-.message.v1", "%ED%A0%80"),
    _subject("U+0000, encoded", "chat.acme.ana%00.-.message.v1", "U+0000"),
    _subject("U+0000", "chat.acme.ana\0.-.message.v1", "U+0000"),
    _subject("a control character", "chat.acme.ana\x01.-.message.v1", "%01"),
    _subject("a vertical tab", "chat.acme.ana\x0bx.-.message.v1", "%0B"),
    _subject("a form feed", "chat.acme.ana\x0c9.-.message.v1", "%0C"),
    _subject("a space that is no ASCII", "chat.acme.ana\u2003.-.message.v1", "%E2%80%83"),
    _subject("wild cards in a token", "chat.acme.a*a>.-.message.v1", "%2A"),
    _subject("the current one as a user", "chat.acme.-.-.message.v1", "%2D"),
    _subject("a user beyond the limit", f"chat.acme.{'u' * 256}.-.message.v1", "the limit is 255"),
    _subject("a conversation of 3,500 bytes", f"chat.acme.ana.{'c' * 3500}.message.v1", "the limit is 255"),
    _subject("too few parts", "chat.acme.ana", "chat.<tenant>"),
    _subject("too many parts", "chat.acme.ana.-.message.v1.v1", "chat.<tenant>"),
    _subject("no such event", "chat.acme.ana.-.whispered.v1", "whispered", "unknown_event"),
    _subject("an event in capitals", "chat.acme.ana.-.MESSAGE.v1", "MESSAGE"),
    _subject("a version without end", f"chat.acme.ana.-.message.v{'9' * 40}", "version"),
    _body("no JSON", b"\x00\xff", "JSON"),
    _body("nothing", b"", "body"),
    _body("a list", b"[]", "body"),
    _body("brackets without end", b"[" * 200_000, "body"),
    _body("U+0000 in a text", b'{"role":"user","content":"a\\u0000b"}', "content"),
    _body("a lone surrogate in a text", b'{"role":"user","content":"a\\ud800"}', "body"),
    _body("U+0000 in an id", b'{"role":"user","content":"x","id":"a\\u0000"}', "id"),
    _body("an id that is too long", b'{"role":"user","content":"x","id":"%b"}' % (b"x" * 256), "id"),
    _body("an id that is a number", b'{"role":"user","content":"x","id":7}', "id"),
    _body("an id that a header cannot hold", b'{"role":"user","content":"the otter","id":"a\\nb "}'),
    _body("a time too late", b'{"role":"user","content":"x","sent_at":"9999-12-31T23:59:59Z"}', "sent_at"),
    _body("a number too large", b'{"role":"user","content":"x","n":1e300000}', "numeric", UNSTORABLE),
    _body("a field twice", b'{"role":"user","role":"user","content":"the otter"}'),
)  # fmt: skip


def publish_raw(url: str, subject: bytes, message_id: bytes, body: bytes = SAID) -> None:
    """Publish with a subject and an id as raw bytes, which the client library refuses.

    The test calls it in a thread: the event loop runs the consumers, and the server closes a connection that
    sends no `CONNECT` within two seconds.
    """
    address = urlsplit(url)
    headers = b"NATS/1.0\r\nNats-Msg-Id: %b\r\n\r\n" % message_id
    sizes = b"%d %d" % (len(headers), len(headers) + len(body))
    with socket.create_connection((address.hostname, address.port), timeout=60) as connection:
        connection.sendall(
            b'CONNECT {"verbose":false,"headers":true,"pedantic":false}\r\n'
            b"HPUB %b %b\r\n%b%b\r\nPING\r\n" % (subject, sizes, headers, body)
        )
        with connection.makefile("rb") as answers:
            assert answers.readline().startswith(b"INFO ")
            while (line := answers.readline()) != b"PONG\r\n":
                assert line == b"PING\r\n"


async def memory_of(stock: Stock, owner: str) -> dict[str, Any]:
    """Return the memory of a user as replies show it."""
    found = await stock.ask("search", owner, query="likes", scope=["memories", "messages", "documents"])
    return {
        "messages": await stock.contents(owner),
        "facts": (await stock.ask("read", owner))["facts"],
        "hits": sorted(each["text"] for each in found["hits"]),
        "context": await stock.ask("context", owner) | {"seen_seq": None},
        "degraded": found.get("degraded"),
    }


def owner_of(subject: str) -> tuple[str, str] | None:
    origin = find_origin(subject)
    return origin and origin.owner


async def positions_of(connection: Client, owner: tuple[str, str]) -> list[int]:
    """Return the log positions of a user's events, whatever the spelling of the ids."""
    return [
        delivery.sequence
        async for page in read_event_pages(connection, ">", 0)
        for delivery in page
        if owner_of(delivery.subject) == owner
    ]


async def audit(deployment: Deployment) -> Audit:
    async with open_site(deployment) as place, open_live_pages(place) as pages:
        return await run_audit(place.connection, place.database, UserSample(), lambda *_: None, pages)


@pytest.mark.long
async def test_fifty_hostile_messages_harm_only_themselves(
    stock: Stock, connection: Client, nats_url: str, vectors_deployment: Deployment
) -> None:
    async with run_consumers(("persist", "index", "dedupe", "retrieve"), vectors_deployment):
        await stock.say("Eva likes the sea", "globex.eva.-")
        await stock.ask("save", "globex.eva", text="Likes herring")
        await stock.ask("document", "globex.eva", action="add", text="What Eva likes: a page.")
        await indexed(stock, await read_log_end(connection.jetstream()))
        before = await memory_of(stock, "globex.eva")

        positions = {}
        jetstream = connection.jetstream(timeout=60)
        for each in HOSTILE:
            headers = dict(each.headers) or None
            acknowledged = await jetstream.publish(each.subject, each.body, headers=headers)
            positions[acknowledged.seq] = each
        for user in b"\xff", b"ana\x80":
            subject = b"chat.acme.%b.-.message.v1" % user
            await asyncio.to_thread(publish_raw, nats_url, subject, b"raw-%d" % user[0])
        for place in "one", "two":
            message_id = {"one": b"I\xe1", "two": b"I\xe9"}[place]
            body = b'{"role":"user","content":"the otter, %b"}' % place.encode()
            await asyncio.to_thread(publish_raw, nats_url, MESSAGE.encode(), message_id, body)
        await indexed(stock, await stock.say("the otter dives", "acme.ana.-"))

        letters = {each.sequence: each for each in await kept(connection)}
        for seq, each in positions.items():
            assert (letters[seq].reason if seq in letters else "") == each.reason, each.name
            assert seq not in letters or each.names in letters[seq].error, each.name
        assert len(letters) == sum(bool(each.reason) for each in HOSTILE) + 2
        assert all(letters[seq].subject == each.subject for seq, each in positions.items() if each.reason)

        async with browsing(vectors_deployment) as browser:
            await browser.see("/dead")
            for letter in letters.values():
                await browser.see(f"/dead/{letter.id}")

        assert (await audit(vectors_deployment)).faults.named == []
        said = await stock.contents("acme.ana", limit=100)
        assert [each for each in said if each in ("the otter, one", "the otter, two")] == [
            "the otter, one", "the otter, two"
        ]  # fmt: skip
        assert len(said) == sum(not each.reason for each in HOSTILE) + 3
        found = await stock.ask("search", "acme.ana", query="otter", scope=["messages"], limit=5)
        assert len(found["hits"]) == 5
        assert not found.get("degraded")

        ours = [each for each in HOSTILE if owner_of(each.subject) == ("acme", "ana")]
        there = await stock.ask("erase", "acme.ana", verify=True, text="otter")
        assert there["left"]["log"] == len(ours) + 3
        assert there["left"]["dead_letters"] == sum(bool(each.reason) for each in ours)
        assert there["found"]["log"] == sum(b"otter" in each.body for each in ours) + 3

        receipt = await stock.ask("erase", "acme.ana")
        assert receipt["pending"] == []
        assert receipt["removed"] == there["left"]
        verified = await stock.ask("erase", "acme.ana", verify=True, text="otter")
        assert verified["left"] == NOTHING
        assert not any(verified["found"].values())
        assert await positions_of(connection, ("acme", "ana")) == [receipt["seen_seq"]], "a tombstone remains"
        assert await stock.contents("acme.ana") == []
        assert (await audit(vectors_deployment)).faults.named == []
        assert await memory_of(stock, "globex.eva") == before


async def plant(deployment: Deployment, owner: tuple[str, str], seq: int) -> None:
    """Write the point that earlier versions made of a message whose id contains U+0000."""
    made_by = await read_model_record(deployment)
    assert made_by is not None
    async with open_vectors(deployment, model=made_by.model, dimension=made_by.dimension) as vectors:
        some = (await vectors.read_page(Collection.MESSAGES)).points[0]
        payload: dict[str, JsonValue] = {"event_id": "a\0b", "seq": seq}
        place = derive_point_id(*owner, "message", "a\0b")
        await vectors.upsert(Collection.MESSAGES, [Point(place, owner, payload, some.sparse, some.dense)])


async def test_reindex_skips_points_with_hostile_ids(
    stock: Stock, connection: Client, vectors_deployment: Deployment
) -> None:
    async with run_consumers(("persist", "index"), vectors_deployment):
        poison = await stock.publish(MESSAGE, SAID, Nats_Msg_Id="a\0b")
        end = await indexed(stock, await stock.say("the otter dives", "acme.ana.-"))
        await plant(vectors_deployment, ("acme", "ana"), poison)
    await reset_durable(connection, LOG, "index")
    await reset_vectors(vectors_deployment)
    async with run_consumers(("persist", "index"), vectors_deployment):
        await indexed(stock, end)
        audited = (await audit(vectors_deployment)).vectors
        assert audited is not None
        assert audited[Collection.MESSAGES].points == 1


async def test_old_points_with_unstorable_ids_are_ignored(
    stock: Stock, connection: Client, vectors_deployment: Deployment
) -> None:
    owner = "acme", "ana"
    async with run_consumers(("persist", "index", "dedupe", "retrieve"), vectors_deployment):
        await stock.say("the otter swims", "acme.ana.-")
        poison = await stock.publish(MESSAGE, SAID, Nats_Msg_Id="a\0b")
        await indexed(stock, await stock.say("the otter dives", "acme.ana.-"))
        await plant(vectors_deployment, owner, poison)
        made_by = await read_model_record(vectors_deployment)
        assert made_by is not None
        async with open_vectors(
            vectors_deployment, model=made_by.model, dimension=made_by.dimension
        ) as vectors:
            found = await stock.ask("search", "acme.ana", query="otter", scope=["messages"])
            assert {each["text"] for each in found["hits"]} == {"the otter swims", "the otter dives"}
            assert not found.get("degraded")
            audited = await audit(vectors_deployment)
            assert audited.faults.named == []
            assert audited.vectors is not None
            assert audited.vectors[Collection.MESSAGES].dead == 1

            receipt = await stock.ask("erase", "acme.ana")
            assert receipt["pending"] == []
            assert await vectors.count(Collection.MESSAGES, owner) == 0


async def test_conversation_erasure_covers_every_spelling_of_its_id(
    stock: Stock, connection: Client, vectors_deployment: Deployment
) -> None:
    async with run_consumers(("persist", "index", "retrieve"), vectors_deployment):
        await stock.say("kept", "acme.ana.other")
        kept_on = [
            await stock.publish("chat.acme.ana.othe%72.message.v1", SAID),
            await stock.publish("chat.acme.eva.tri%70.message.v1", SAID),
        ]
        await stock.say("gone", "acme.ana.trip")
        for place in ("ana.tri%70", "an%61.trip", "an%61.tri%70"):
            await stock.publish(f"chat.acme.{place}.message.v1", SAID)
        await stock.publish("chat.acme.ana.trip.MESSAGE.v1", SAID)
        end = await stock.say("kept, too", "acme.ana.other")
        assert await stock.contents("acme.ana", conversation="other", min_seq=end) == ["kept", "kept, too"]

        receipt = await stock.ask("erase", "acme.ana", conversation="trip")

        assert receipt["pending"] == []
        assert receipt["removed"]["log"] == 5
        assert receipt["removed"]["dead_letters"] == 4
        assert sorted(each.sequence for each in await kept(connection)) == kept_on
        assert await positions_of(connection, ("acme", "eva")) == kept_on[1:]


async def test_old_letters_with_wildcards_are_purged_alone(
    stock: Stock, connection: Client, vectors_deployment: Deployment
) -> None:
    await stock.publish("chat.acme.*.-.message.v1", b"{")
    theirs = await stock.publish("chat.acme.eva.-.message.v1", b"{")
    async with run_consumers(("persist", "index", "retrieve"), vectors_deployment):
        await persisted(connection, await stock.say("last"))
        jetstream = connection.jetstream()
        encoded = await jetstream.get_last_msg(DEAD, "dead.persist.chat.acme.%2A.>")
        assert encoded.seq is not None
        await jetstream.delete_msg(DEAD, encoded.seq)
        subject = "dead.persist.chat.acme.*.-.message.v1"
        await jetstream.publish(subject, b"{", headers={**(encoded.headers or {}), MESSAGE_ID: "as before"})

        receipt = await stock.ask("erase", "acme.%2A")

        assert receipt["pending"] == []
        assert receipt["removed"]["dead_letters"] == 1
        assert [each.sequence for each in await kept(connection)] == [theirs]
