"""Limits of a tenant at the NATS server: messages above them are refused, other tenants are unaffected."""

from pathlib import Path

import pytest

from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.provisioning.authorization import Limits
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.embedded.logins import FolderLogins
from mnemon_infra.embedded.nats_server import NatsServer
from mnemon_producers.client import MemoryClient
from mnemon_producers.errors import NotConnected, PublishFailed
from mnemon_producers.timeouts import Timeouts

PERSISTENT = Timeouts(publish=1, retry=60)
"""Short attempts within a long retry: the client notices a refusal when an attempt times out."""


def test_limits_survive_a_new_password_and_are_removed_if_left_out(tmp_path: Path) -> None:
    def limits() -> object:
        with FolderLogins(tmp_path).edit() as users:
            return {each.tenant: each.limits for each in users.list_permissions()}["A"]

    with FolderLogins(tmp_path).edit() as users:
        users.issue_tenant_login("A")
        assert users.replace_tenant_limits("A", Limits(payload=4096, connections=1))
        assert not users.replace_tenant_limits("nobody", Limits(payload=4096))
        users.issue_tenant_login("A")
    assert limits() == {"payload": 4096, "connections": 1}
    with FolderLogins(tmp_path).edit() as users:
        assert users.replace_tenant_limits("A", Limits(subscriptions=10))
    assert limits() == {"subscriptions": 10}


async def read_refusal(address: str) -> str:
    """Return the reason of a refused connection; connect again if the connection ends before the reason."""
    while True:
        with pytest.raises(NotConnected) as refused:
            async with MemoryClient.connect(address, tenant="A"):
                pass
        if "reset by peer" not in str(refused.value):
            return str(refused.value)


async def test_limit_of_one_tenant_does_not_refuse_another(tmp_path: Path) -> None:
    with FolderLogins(tmp_path).edit() as users:
        logins = {tenant: users.issue_tenant_login(tenant) for tenant in "AB"}
        users.replace_tenant_limits("A", Limits(payload=4096, connections=1))
    server = NatsServer(tmp_path, None)
    await server.start()
    operator = await connect(server.build_login_url("operator"), name="operator")
    await provision(operator)
    await operator.close()
    addresses = {tenant: login.add_to_url(server.url) for tenant, login in logins.items()}

    async with MemoryClient.connect(addresses["B"], tenant="B", timeouts=PERSISTENT) as other:
        async with MemoryClient.connect(addresses["A"], tenant="A", timeouts=PERSISTENT) as client:
            assert await client.publish("u", role="user", content="as long as it may be")
            assert "maximum account active connections" in await read_refusal(addresses["A"])
            with pytest.raises(PublishFailed, match="more bytes than this login may send") as refused:
                await client.publish("u", role="user", content="x" * 5000)
            assert not refused.value.retryable
        assert await other.publish("u", role="user", content="x" * 5000)
    async with MemoryClient.connect(addresses["A"], tenant="A", timeouts=PERSISTENT) as client:
        assert await client.publish("u", role="user", content="connected anew")
    await server.stop()
