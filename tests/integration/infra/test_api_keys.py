"""The bucket of API keys."""

import asyncio

import pytest
from nats.aio.client import Client
from nats.js.client import JetStreamContext

from mnemon_infra.settings import api_keys
from mnemon_infra.settings.api_keys import MAX_LOOKUPS, TooManyLookups, issue_key, open_api_keys


async def test_all_keys_are_listed_oldest_first(connection: Client) -> None:
    keys = await open_api_keys(connection)
    issued = [issue_key("acme", name=f"key {number}").stored for number in range(300)]
    for each in issued:
        await keys.add(each)
    assert await keys.list_keys() == sorted(issued, key=lambda each: (each.created_at, each.id))


async def test_all_keys_are_listed_though_the_end_mark_comes_early(
    connection: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = await open_api_keys(connection)
    issued = issue_key("acme").stored
    await keys.add(issued)
    # nats-py sets its end mark early if the server has sent all entries and none has arrived yet.
    monkeypatch.setattr(JetStreamContext.PushSubscription, "delivered", property(lambda _: 0))
    for _ in range(20):
        assert await keys.list_keys() == [issued]


async def test_revoked_and_unreadable_keys_are_not_listed(connection: Client) -> None:
    keys = await open_api_keys(connection)
    assert await keys.list_keys() == []
    revoked, kept = issue_key("acme").stored, issue_key("acme").stored
    await keys.add(kept)
    await keys.add(revoked)
    await keys.revoke(revoked.id)
    await connection.publish("$KV.api_keys.0f3a9c21b7d4", b"{")
    await connection.flush()
    assert await keys.list_keys() == [kept]


async def test_wrong_keys_are_looked_up_once(connection: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_keys, "ABSENT_SECONDS", 3600)
    keys = await open_api_keys(connection)
    issued = issue_key("acme")
    await keys.add(issued.stored)
    absent, present = issue_key("acme").text, issued.text
    guessed = present[:-5] + ("AAAAA" if present[-5:] != "AAAAA" else "BBBBB")
    before = connection.stats["out_msgs"]
    found = await asyncio.gather(*[keys.find(each) for each in (absent, present, guessed) for _ in range(50)])
    assert found == [None] * 50 + [issued.stored] * 50 + [None] * 50
    assert await keys.find(absent) is None
    assert connection.stats["out_msgs"] - before == 2, "one for each id"


async def test_lookups_of_unknown_keys_are_limited(connection: Client) -> None:
    keys = await open_api_keys(connection)
    known, new = issue_key("acme"), issue_key("acme")
    await keys.add(known.stored)
    assert await keys.find(known.text) == known.stored
    keys._present.clear()  # as `CACHE_SECONDS` later
    before = connection.stats["out_msgs"]
    wrong = [keys.find(issue_key("acme").text) for _ in range(MAX_LOOKUPS + 100)]
    *refused, found = await asyncio.gather(*wrong, keys.find(known.text), return_exceptions=True)
    assert found == known.stored
    assert [type(each) for each in refused] == [type(None)] * MAX_LOOKUPS + [TooManyLookups] * 100
    assert connection.stats["out_msgs"] - before == MAX_LOOKUPS + 1
    await keys.add(new.stored)
    assert await keys.find(new.text) == new.stored, "the lookups have ended"


async def test_lookup_without_an_answer_frees_its_place(connection: Client) -> None:
    keys = await open_api_keys(connection)
    lookups = [asyncio.create_task(keys.find(issue_key("acme").text)) for _ in range(MAX_LOOKUPS)]
    await asyncio.sleep(0)
    for lookup in lookups:
        lookup.cancel()  # as the proxy does after `MNEMON_PROXY_MEMORY_SECONDS`
    await asyncio.wait(lookups)
    while keys._lookups:
        await asyncio.wait([*keys._lookups.values()])
    assert await keys.find(issue_key("acme").text) is None


async def test_new_and_revoked_keys_count_at_once_in_their_process(connection: Client) -> None:
    keys = await open_api_keys(connection)
    issued = issue_key("acme")
    assert await keys.find(issued.text) is None
    await keys.add(issued.stored)
    assert await keys.find(issued.text) == issued.stored
    await keys.revoke(issued.stored.id)
    assert await keys.find(issued.text) is None
