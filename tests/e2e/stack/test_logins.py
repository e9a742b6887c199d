"""`mnemon up` with logins: clients and commands work with a login, and are refused without one."""

import asyncio
import json
from pathlib import Path

import pytest

from mnemon_contracts.events.chat import MessageV1
from mnemon_infra.broker.connection import BrokerRefused, connect
from mnemon_infra.broker.provisioning.authorization import Login
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.embedded.logins import FolderLogins
from mnemon_infra.embedded.nats_server import NatsServer
from mnemon_producers.client import MemoryClient
from mnemon_producers.errors import NotConnected, PublishFailed
from mnemon_producers.events import ChatEvent
from mnemon_producers.timeouts import Timeouts
from tests.support.processes.stack import Up, mnemon, start_mnemon, until

PATIENT = Timeouts(publish=20, ask=20, save=30)


async def everything(url: str, tenant: str) -> None:
    """Call all methods of the client that a bot uses."""
    async with MemoryClient.connect(url, tenant=tenant, timeouts=PATIENT) as memory:
        await memory.start("u1", "first")
        await memory.publish("u1", "user", "My sister's name is Vera.")
        said = await memory.publish_many(
            [ChatEvent("u1", MessageV1(role="assistant", content=f"Noted, {n}.")) for n in range(40)]
        )
        context = await memory.context("u1", query="What is her name?", min_seq=said.last_seq)
        assert context.messages
        assert len((await memory.history("u1", min_seq=said.last_seq)).messages) == 30
        saved = await memory.save("u1", "The user likes green tea in the morning")
        assert saved.id is not None
        fact = saved.id
        assert (await memory.read("u1", min_seq=saved.seen_seq)).facts
        assert (await memory.get("u1", fact, min_seq=saved.seen_seq)).fact
        updated = await memory.update("u1", fact, text="The user likes black tea in the morning")
        assert (await memory.search("u1", "tea", min_seq=updated.seen_seq)).hits
        kept = await memory.set_profile("u1", {"name": "Vera"})
        assert (await memory.profile("u1", min_seq=kept.seen_seq)).profile == {"name": "Vera"}
        await memory.ask("u1", "tasks")
        await memory.ask("u1", "document")
        await memory.forget("u1", fact)
        cleared = await memory.clear("u1", "first")
        assert (await memory.status("u1", min_seq=cleared)).messages == 0
        await memory.erase("u1")


async def require_refusal(url: str, tenant: str) -> None:
    with pytest.raises(NotConnected):
        async with MemoryClient.connect(url, tenant=tenant, timeouts=PATIENT):
            pass


@pytest.mark.long
async def test_only_bots_and_commands_with_logins_connect(up: Up) -> None:
    issued = json.loads((await mnemon("auth", "tenant", "acme", "--data", up.data, "--json")).out)
    endpoints = await up.start()
    secrets = [
        file.read_text() for file in (up.data / "auth").iterdir() if file.name in {"worker", "operator"}
    ]
    assert len(secrets) == 2
    announced = (up.data / "endpoints.json").read_text()
    assert not any(secret in announced + up.log for secret in (*secrets, issued["password"]))

    with pytest.raises(BrokerRefused):
        await connect(endpoints.nats, name="nobody")
    await everything(issued["url"].replace("HOST:4222", endpoints.nats.removeprefix("nats://")), "acme")

    status = await mnemon("status", "--data", up.data, "--json")
    assert (status.code, json.loads(status.out)["problems"]) == (0, [])
    said = await mnemon("save", "The user likes chess", "--data", up.data, "--tenant", "acme", "--user", "u2")
    assert said.code == 0, said.err

    later = json.loads((await mnemon("auth", "tenant", "globex", "--data", up.data, "--json")).out)
    async with MemoryClient.connect(later["url"], tenant="globex", timeouts=PATIENT) as memory:
        await memory.publish("u1", "user", "hi")
    limited = await mnemon("auth", "limit", "globex", "--payload", "4096", "--data", up.data)
    assert limited.code == 0, limited.err
    async with MemoryClient.connect(later["url"], tenant="globex", timeouts=PATIENT) as memory:
        with pytest.raises(PublishFailed, match="more bytes than this login may send"):
            await memory.publish("u1", "user", "x" * 5000)
    assert (await mnemon("auth", "revoke", "globex", "--data", up.data)).code == 0
    await require_refusal(later["url"], "globex")
    # As after a run that was killed before the server had loaded the file.
    third = json.loads((await mnemon("auth", "tenant", "initech", "--data", up.data, "--json")).out)
    with FolderLogins(up.data).edit() as logins:
        assert logins.revoke_tenant_login("initech")
    again = await mnemon("auth", "revoke", "initech", "--data", up.data)
    assert (again.code, "has no login" in again.err) == (1, True)
    await require_refusal(third["url"], "initech")
    assert "permission denied" not in up.log


@pytest.mark.long
async def test_new_logins_take_effect_at_the_next_start(stack: Up) -> None:
    assert stack.endpoints
    issued = await mnemon("auth", "tenant", "acme", "--data", stack.data, "--json")
    assert issued.code == 0
    assert "take effect at the next start" in issued.err
    assert (await mnemon("settings", "get", "--data", stack.data, "--json")).code == 0
    async with MemoryClient.connect(stack.endpoints.nats, tenant="acme", timeouts=PATIENT) as memory:
        said = await memory.publish("u1", "user", "hi")
    await stack.stop()
    await stack.start()
    async with MemoryClient.connect(json.loads(issued.out)["url"], tenant="acme", timeouts=PATIENT) as memory:
        assert len((await memory.history("u1", min_seq=said)).messages) == 1


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("tenant", "acme"), 2),
        (("tenant", ""), 2),
        (("revoke", "acme", "--file"), 1),
        (("list", "--file"), 0),
    ],
)
async def test_refused_login_commands_say_why(tmp_path: Path, arguments: tuple[str, ...], code: int) -> None:
    place = (tmp_path / "users.conf",) if arguments[-1] == "--file" else ()
    ended = await mnemon("auth", *arguments, *place)
    assert ended.code == code
    assert bool(ended.err) == bool(code)


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "name"),
    [
        (("gateway", "--port", "0"), "mnemon-gateway"),
        (("mcp", "--http", "0", "--tenant", "acme", "--user", "u1"), "mnemon-mcp"),
    ],
    ids=["gateway", "mcp"],
)
async def test_server_ends_when_nats_closes_its_connection_for_good(
    tmp_path: Path, command: tuple[str, ...], name: str
) -> None:
    logins = FolderLogins(tmp_path)

    def issue_login() -> Login:
        with logins.edit() as users:
            is_bot = "--tenant" in command
            return users.issue_tenant_login("acme") if is_bot else users.issue_role_login("gateway")

    login = issue_login()
    server = NatsServer(tmp_path, None)
    await server.start()
    output = tmp_path / "output"
    try:
        async with await connect(server.build_login_url("operator"), name="test") as operator:
            await provision(operator)
        with output.open("wb") as shown:
            process = await start_mnemon(
                *command,
                environment={"MNEMON_NATS_URL": login.add_to_url(server.url)},
                output=shown,
                errors=shown,
            )
        await until(lambda: "Press Ctrl-C" in output.read_text())
        issue_login()
        await server.reload()
        try:
            async with asyncio.timeout(20):
                assert await process.wait() == 3
        finally:
            if process.returncode is None:
                process.kill()
        assert f"closed the connection {name} for good" in output.read_text()
    finally:
        await server.stop()
