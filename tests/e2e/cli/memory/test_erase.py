"""`mnemon erase`: the receipt, the check for remaining content, and exit codes for scripts."""

import json
from pathlib import Path
from uuid import uuid4

import pytest
from nats.aio.client import Client

from mnemon_consumers.app import run_consumers
from mnemon_infra.broker.connection import connect
from mnemon_infra.config import Deployment
from tests.support.processes.stack import Up, mnemon
from tests.support.servers.qdrant import locate_vectors
from tests.support.stock_client import Stock, indexed, persisted

STORES = "log", "database", "vectors", "dead_letters", "work", "model_batches"
NOTHING = dict.fromkeys(STORES, 0)
ALL = ("persist", "index", "dedupe", "retrieve")


async def test_erase_removes_everything_of_a_user(
    connection: Client, deployment: Deployment, tmp_path: Path
) -> None:
    stock = Stock(connection)
    deployment = locate_vectors(deployment, tmp_path / "vectors")
    url = str(deployment.nats_url)
    async with run_consumers(ALL, deployment):
        await indexed(stock, await stock.say("I like tea"))
        there = await mnemon("erase", "acme", "u1", "--verify", "--json", MNEMON_NATS_URL=url)
        assert there.code == 1
        assert json.loads(there.out)["left"]["log"] == 1

        asked = await mnemon("erase", "acme", "u1", MNEMON_NATS_URL=url)
        assert (asked.code, asked.out.strip()) == (1, ""), "nobody said yes"
        assert await stock.contents() == ["I like tea"]

        erased = await mnemon("erase", "acme", "u1", "--yes", "--json", MNEMON_NATS_URL=url)
        assert (erased.code, erased.err) == (0, "")
        assert json.loads(erased.out)["removed"] == {**NOTHING, "log": 1, "database": 1, "vectors": 1}

        verify = "erase", "acme", "u1", "--verify", "--text", "TEA", "--json"
        left = await mnemon(*verify, MNEMON_NATS_URL=url)
        assert (left.code, json.loads(left.out)["left"]) == (0, NOTHING)
        await indexed(stock, await stock.say("Tea again"))
        left = await mnemon(*verify, MNEMON_NATS_URL=url)
        assert (left.code, json.loads(left.out)["left"]) == (1, NOTHING)
        assert json.loads(left.out)["found"] == {"log": 1, "dead_letters": 0, "database": 1, "statistics": 0}
        await indexed(stock, await stock.say("Tea abroad", "acme.u1.trip"))
        of_one = "erase", "acme", "u1", "--conversation", "trip"
        trip = await mnemon(*of_one, "--yes", "--json", MNEMON_NATS_URL=url)
        assert trip.code == 0
        assert json.loads(trip.out)["removed"] == {**NOTHING, "log": 1, "database": 1, "vectors": 1}
        left = await mnemon(*of_one, "--verify", "--json", MNEMON_NATS_URL=url)
        assert (left.code, json.loads(left.out)["left"]) == (0, NOTHING)
        again = await mnemon("erase", "acme", "u1", "--yes", MNEMON_NATS_URL=url)
        assert again.code == 0
        assert "dead_letters" in again.out


async def test_erasure_of_an_unknown_name_suggests_to_check_its_spelling(shared: Up) -> None:
    tenant = f"t{uuid4().hex[:8]}"
    assert shared.endpoints
    async with await connect(shared.endpoints.nats, name="test") as connection:
        await persisted(connection, await Stock(connection).say("I like tea", f"{tenant}.u1.-"))
    owner = "--tenant", tenant, "--user"
    for named in (("nobody",), ("u1", "--conversation", "nowhere")):
        unknown = await mnemon("erase", *owner, *named, "--yes", "--json", "--data", shared.data)
        assert unknown.code == 1
        assert json.loads(unknown.out)["removed"] == NOTHING
        assert f"user '{named[0]}' of tenant '{tenant}' had no memory" in unknown.err
        assert "Check the spelling" in unknown.err
    for _ in range(2):
        known = await mnemon("erase", *owner, "u1", "--yes", "--data", shared.data)
        assert (known.code, known.err) == (0, ""), "a repeated erasure is no mistake"


async def test_erase_takes_tenant_and_user_once() -> None:
    for arguments in (("acme",), ("acme", "--user", "u1"), ("acme", "u1", "--tenant", "acme"), ()):
        wrong = await mnemon("erase", *arguments, "--yes")
        assert wrong.code == 2
        assert "mnemon erase --tenant acme --user u42" in wrong.err


@pytest.mark.long
async def test_erase_reports_pending_work(connection: Client, deployment: Deployment) -> None:
    await Stock(connection).say("I like tea")
    async with run_consumers(("retrieve",), deployment):
        erased = await mnemon("erase", "acme", "u1", "--yes", MNEMON_NATS_URL=str(deployment.nats_url))
    assert erased.code == 1
    assert "not done yet: log, dead_letters, work, database, model_batches, vectors" in erased.err
