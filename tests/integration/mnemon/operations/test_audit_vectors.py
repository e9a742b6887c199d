"""Comparison of points with rows by the audit: missing and surplus points are named."""

from pathlib import Path
from uuid import uuid4

import pytest
from nats.aio.client import Client

from mnemon.operations.audit.ledger import Audit
from mnemon.operations.audit.run import run_audit
from mnemon.operations.rebuild.live_vectors import open_live_pages
from mnemon_consumers.app import run_consumers
from mnemon_contracts.identity import derive_point_id
from mnemon_infra.broker.streams.applied_position import read_log_end
from mnemon_infra.config import Deployment
from mnemon_infra.database.audit.events import UserSample
from mnemon_infra.models.embedding import Sparse
from mnemon_infra.rebuild.generations import open_site
from mnemon_infra.vectors.engines import open_vectors
from mnemon_infra.vectors.generations import read_model_record
from mnemon_infra.vectors.port import Collection, Point
from tests.support.servers.qdrant import locate_vectors
from tests.support.stock_client import Stock, indexed

LATER = b'{"role":"user","content":"x","later":1e300000}'
"""A message with a number that PostgreSQL cannot store."""


@pytest.mark.long
async def test_audit_names_missing_and_surplus_points(
    stock: Stock, connection: Client, deployment: Deployment, tmp_path: Path
) -> None:
    deployment = locate_vectors(deployment, tmp_path / "vectors")
    owner = "acme", "u1"

    async def found() -> Audit:
        async with open_site(deployment) as place, open_live_pages(place) as pages:
            return await run_audit(connection, place.database, UserSample(), lambda *_: None, pages)

    async with run_consumers(("persist", "index", "dedupe", "retrieve"), deployment):
        for number in range(70):
            await stock.say(f"number {number}", id=f"m{number}")
        await stock.say("gone soon", "acme.u1.talk")
        await stock.publish("chat.acme.u1.talk.cleared.v1", {})
        await stock.publish("chat.acme.u2.-.message.v1", LATER)
        for text in ("Likes tea", "Lives in Riga"):
            await stock.ask("save", text=text)
        await stock.ask("update", id="pf_001", text="Likes green tea")
        await stock.ask("forget", id="pf_002")
        for text in ("A page. " * 400, "Another page. " * 400):
            await stock.ask("document", action="add", document_id="d", text=text)
            await indexed(stock, await read_log_end(connection.jetstream()))
        said = await stock.say("last", id="last")
        await indexed(stock, said)

        clean = await found()
        assert clean.faults.named == []
        assert clean.vectors is not None
        assert {name: each.shown for name, each in clean.vectors.items()} == {
            Collection.MEMORIES: 1, Collection.MESSAGES: 71, Collection.DOCUMENTS: 1, Collection.SUMMARIES: 0
        }  # fmt: skip
        assert clean.vectors[Collection.MESSAGES].points == 72, "one of a dead letter"
        assert clean.vectors[Collection.MESSAGES].dead == 1
        assert clean.vectors[Collection.DOCUMENTS].points > 2

        made_by = await read_model_record(deployment)
        assert made_by is not None
        async with open_vectors(deployment, model=made_by.model, dimension=made_by.dimension) as vectors:
            await vectors.delete(Collection.MESSAGES, owner, [derive_point_id(*owner, "message", "last")])
            await vectors.delete(Collection.DOCUMENTS, owner, [derive_point_id(*owner, "chunk", "d", "1")])
            stray = uuid4()
            page = await vectors.read_page(Collection.MEMORIES)
            payload = {"fact_id": "pf_002", "event_id": "gone"}
            dense = page.points[0].dense
            await vectors.upsert(
                Collection.MEMORIES, [Point(stray, owner, payload, Sparse([1], [1.0]), dense)]
            )
        faults = {(each.kind, each.where, each.detail) for each in (await found()).faults.named}
        assert faults == {
            ("no_point", "vectors of messages", "last"),
            ("no_point", "vectors of documents", "d"),
            ("left_point", "vectors of memories", str(stray)),
        }
    assert [each.seq for each in (await found()).faults.named if each.detail == "last"] == [said]
