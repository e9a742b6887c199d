"""The bucket of API keys."""

import pytest
from nats.aio.client import Client
from nats.js.client import JetStreamContext

from mnemon_infra.settings.api_keys import issue_key, open_api_keys


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
    # The state in which nats-py sets its mark: the server has sent all entries, and none has arrived.
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
