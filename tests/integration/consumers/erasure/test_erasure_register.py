"""Each erasure has an entry in the register; otherwise the receipt lists the register as pending."""

import asyncio
from pathlib import Path

import pytest

from mnemon_consumers.app import run_consumers
from mnemon_consumers.retrieve.verbs.erasure import erase
from mnemon_infra.config import Deployment
from mnemon_infra.storage.erasure_register import ErasureRegister, RegisterEntry
from tests.support.log.audited_log import wait_until_swept
from tests.support.stock_client import Stock

CONSUMERS = "persist", "index", "retrieve"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "register"


@pytest.fixture
def registered(vectors_deployment: Deployment, folder: Path) -> Deployment:
    return vectors_deployment.model_copy(update={"erasure_register": str(folder)})


async def entries(folder: Path) -> list[RegisterEntry]:
    return await ErasureRegister.open(folder).list_entries()


async def test_an_erasure_is_registered_without_texts(
    stock: Stock, registered: Deployment, folder: Path
) -> None:
    async with run_consumers(CONSUMERS, registered):
        await stock.say("a secret of Anna", "acme.u1.-")
        user = await stock.ask("erase")
        await stock.say("about the trip", "acme.u2.trip")
        conversation = await stock.ask("erase", "acme.u2", conversation="trip")
    assert user["pending"] == conversation["pending"] == []
    first, second = await entries(folder)
    assert (first.owner, first.position, first.event.conversation) == (("acme", "u1"), user["seen_seq"], None)
    assert second.owner == ("acme", "u2")
    assert (second.position, second.event.conversation) == (conversation["seen_seq"], "trip")
    files = list((folder / "erasures").iterdir())
    assert all(b"Anna" not in each.read_bytes() for each in files)
    assert all("u1" not in each.stem or "acme" not in each.stem for each in files)
    assert {each.stat().st_mode & 0o777 for each in files} == {0o600}


@pytest.mark.long
async def test_an_unusable_register_is_pending_and_registered_later(
    stock: Stock, registered: Deployment, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erase, "ERASURE_TIMEOUT", 1.0)
    folder.write_text("no folder")
    async with run_consumers(CONSUMERS, registered):
        await stock.say("hello", "acme.u1.-")
        reply = await stock.ask("erase")
        assert "register" in reply["pending"]
        async with asyncio.timeout(60):  # under load, the log may be purged after the receipt
            while (await stock.ask("erase", verify=True, text="hello"))["found"]["log"]:
                pass
        folder.unlink()
        async with asyncio.timeout(60):
            await wait_until_swept(stock.connection)
    assert [each.position for each in await entries(folder)] == [reply["seen_seq"]]


async def test_each_erasure_of_a_user_has_an_entry(
    stock: Stock, registered: Deployment, folder: Path
) -> None:
    async with run_consumers(CONSUMERS, registered):
        await stock.say("one", "acme.u1.-")
        await stock.ask("erase")
        await stock.say("two", "acme.u1.-")
        await stock.ask("erase")
    found = await entries(folder)
    assert len(found) == 2
    assert found[0].position < found[1].position


async def test_an_erasure_is_registered_beside_an_event_with_an_invalid_subject(
    stock: Stock, registered: Deployment, folder: Path
) -> None:
    await stock.publish("memory.acme.u1.user.Erased.v1", {})
    async with run_consumers(CONSUMERS, registered):
        await stock.say("hello", "acme.u1.-")
        reply = await stock.ask("erase")
        assert reply["pending"] == []
    assert [each.position for each in await entries(folder)] == [reply["seen_seq"]]
