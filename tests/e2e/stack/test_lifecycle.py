"""`mnemon up`: the servers that it starts, its end by signals, and its start after a kill."""

import asyncio
import json
import signal
import socket
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import nats
import psutil
import psycopg
import pytest

from tests.support.processes.stack import TIMEOUT, Up, mnemon, start_mnemon, until
from tests.support.servers.ports import free_port
from tests.support.servers.qdrant import URL


async def say(url: str, text: str) -> int:
    """Publish a message without the client of mnemon; return its position in the log."""
    async with await nats.connect(url) as client:
        body = json.dumps({"role": "user", "content": text}).encode()
        return (await client.jetstream().publish("chat.acme.u1.-.message.v1", body)).seq


async def history(url: str, seq: int) -> list[str]:
    """Return the user's messages up to `seq` at least; empty while they cannot be read."""
    async with await nats.connect(url) as client:
        request = json.dumps({"min_seq": seq}).encode()
        reply = json.loads((await client.request("ask.acme.u1.history.v1", request, timeout=60)).data)
    if "error" in reply:
        assert reply["error"]["retryable"], reply
        return []
    return [message["content"] for message in reply["messages"]]


async def test_announced_endpoints_answer(shared: Up) -> None:
    assert shared.endpoints is not None
    assert json.loads((shared.data / "endpoints.json").read_text()) == {
        "nats": shared.endpoints.nats,
        "database": shared.endpoints.database,
        "qdrant": URL,
        "http": shared.endpoints.http,
        "gateway": shared.endpoints.gateway,
    }
    with psycopg.connect(shared.endpoints.database) as connection:
        found = connection.execute("SELECT current_database(), current_setting('fsync')").fetchone()
    assert found == ("mnemon", "on")
    assert await history(shared.endpoints.nats, await say(shared.endpoints.nats, "hi")) == ["hi"]


async def end_stack(up: Up, number: signal.Signals) -> None:
    assert await up.stop(number) == 0
    assert up.endpoints is None
    assert up.servers() == {}


@pytest.mark.long
async def test_signal_ends_all_processes_also_during_start(fresh_up: Up) -> None:
    await fresh_up.begin()
    await until(lambda: (fresh_up.data / "run").exists())
    assert await fresh_up.stop(signal.SIGINT) == 0
    assert fresh_up.endpoints is None
    assert fresh_up.servers() == {}
    # A start completes the folder that the interrupted start has left.
    await fresh_up.start()
    await end_stack(fresh_up, signal.SIGTERM)
    await fresh_up.start()
    await end_stack(fresh_up, signal.SIGINT)


@pytest.mark.long
@pytest.mark.parametrize("command", ["audit", "try"])
async def test_terminated_command_stops_the_servers_that_it_started(fresh_up: Up, command: str) -> None:
    if command == "audit":  # `audit` needs the folder of a stopped stack
        await fresh_up.start()
        await end_stack(fresh_up, signal.SIGTERM)
    files = [fresh_up.data / "run" / f"{name}.pid" for name in ("nats-server", "postgres")]
    for file in files:
        file.unlink(missing_ok=True)
    with tempfile.TemporaryFile() as output:
        process = await start_mnemon(
            command, "--data", fresh_up.data, environment={}, output=output, errors=output
        )
        # A search for the servers among all processes may take longer than the command runs.
        await until(lambda: all(file.exists() for file in files))
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(TIMEOUT):
            assert await process.wait() == 128 + signal.SIGTERM
    assert fresh_up.servers() == {}


async def test_second_up_names_the_holder_of_the_folder(shared: Up) -> None:
    second = await mnemon("up", "--data", shared.data)
    assert second.code == 2
    assert f"in use by process {shared.process.pid}, since 20" in second.err
    assert shared.endpoints is not None
    assert set(shared.servers()) == {"nats-server", "postgres"}


@pytest.mark.long
async def test_up_after_kill_ends_orphans_and_recovers(stack: Up) -> None:
    assert stack.endpoints is not None
    before, address = stack.pids(), stack.endpoints.nats
    await say(address, "kept")
    await stack.kill()
    assert set(stack.servers()) == {"nats-server", "postgres"}

    endpoints = await stack.start()

    assert len(stack.pids()) == 2
    assert stack.pids().isdisjoint(before)
    # The address of the broker stays, so that bots reconnect.
    assert endpoints.nats == address
    seq = await say(address, "after")
    assert await history(address, seq) == ["kept", "after"]

    # Kill the command and its servers together.
    await stack.kill()
    for server in stack.servers().values():
        for process in (*server.children(recursive=True), server):
            with suppress(psutil.NoSuchProcess):
                process.kill()
    await until(lambda: not stack.servers())
    assert (stack.data / "postgres" / "postmaster.pid").exists()
    assert stack.endpoints is not None, "nobody was left to remove it"

    endpoints = await stack.start()

    assert await history(endpoints.nats, seq) == ["kept", "after"]


@pytest.mark.long
async def test_ended_server_is_restarted(stack: Up) -> None:
    endpoints = stack.endpoints
    assert endpoints is not None
    said = ["before"]
    assert await history(endpoints.nats, await say(endpoints.nats, "before")) == said
    deaths = [
        (name, number) for name in ("nats-server", "postgres") for number in (signal.SIGKILL, signal.SIGINT)
    ]
    for number_of_deaths, (name, number) in enumerate(deaths, 1):
        server = stack.servers()[name]
        server.send_signal(number)

        def another_runs(name: str = name, former: int = server.pid) -> bool:
            again = stack.servers().get(name)
            return again is not None and again.pid != former

        def answers(times: int = number_of_deaths) -> bool:
            return stack.log.count("server recovered") == times and stack.endpoints == endpoints

        await until(another_runs)
        await until(answers)
        assert stack.process.returncode is None
        assert stack.log.count("server exited, restarting") == number_of_deaths

        said.append(f"after {number.name} of {name}")
        assert await asked_until(endpoints.nats, await say(endpoints.nats, said[-1])) == said


async def asked_until(url: str, seq: int) -> list[str]:
    """Return the user's messages once there are any: consumers reconnect shortly after a server's restart."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        try:
            found = await history(url, seq)
        except nats.errors.Error:
            found = []
        if found or time.monotonic() > deadline:
            return found


@pytest.mark.parametrize("option", ["--nats-port", "--database-port", "--gateway-port"])
async def test_taken_port_is_refused_at_once_with_the_option(data: Path, option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = await mnemon("up", "--data", data, option, str(port))
    assert (refused.code, refused.out) == (2, "")
    assert refused.err == f"mnemon: port {port} is in use\n  Choose another {option}, or leave it out\n"
    assert not (data / "postgres").exists()


@pytest.mark.long
async def test_fixed_ports_a_named_consumer_and_a_configured_server(up: Up) -> None:
    nats_port = free_port(1)
    database_port = nats_port + 1
    ports = "--nats-port", str(nats_port), "--database-port", str(database_port)
    endpoints = await up.start("--only", "persist", *ports)
    assert endpoints.nats == f"nats://127.0.0.1:{nats_port}"
    with psycopg.connect(endpoints.database) as connection:
        assert connection.info.port == database_port
        assert connection.info.host == "127.0.0.1"
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(f"postgresql://postgres:guess@127.0.0.1:{database_port}/mnemon")

    status = await mnemon("status", "--data", up.data, "--json")
    assert json.loads(status.out)["broker"]["services"] == {}
    assert "persist" in up.log
    assert "retrieve" not in up.log
    assert status.code == 0, status

    other = Up(up.data.with_name("other"))
    assert (await other.start(MNEMON_NATS_URL=endpoints.nats)).nats == endpoints.nats
    assert set(other.servers()) == {"postgres"}
    assert await other.stop() == 0
    assert set(up.servers()) == {"nats-server", "postgres"}


async def test_log_without_terminal_is_json(shared: Up) -> None:
    lines = [json.loads(line) for line in shared.log.splitlines() if line.startswith("{")]
    assert lines
    assert all({"event", "level", "logger", "timestamp"} <= line.keys() for line in lines)


async def test_data_folder_denies_other_accounts(shared: Up) -> None:
    assert (shared.data / "endpoints.json").stat().st_mode & 0o077 == 0
    assert shared.data.stat().st_mode & 0o066 == 0
    assert (shared.data / "postgres").stat().st_mode & 0o077 == 0


@pytest.mark.long
async def test_up_exits_with_3_after_a_fatal_fault(up: Up) -> None:
    endpoints = await up.start()
    await say(endpoints.nats, "hi")
    async with await nats.connect(endpoints.nats) as client:
        await client.jetstream().delete_stream("LOG")
    assert (await mnemon("provision", "--data", up.data)).code == 0
    async with asyncio.timeout(TIMEOUT):
        assert await up.process.wait() == 3
    assert "mnemon: the stream LOG was deleted and created again. " in up.log
    assert "restore the newest backup (`mnemon restore`)" in up.log
    assert up.servers() == {}
    assert (await mnemon("up", "--data", up.data)).code == 3


@pytest.mark.long
async def test_up_survives_a_server_that_ends_while_consumers_start(up: Up) -> None:
    await up.begin()
    await until(lambda: up.beside() is not None)
    up.servers()["nats-server"].kill()
    endpoints = await up.ready()
    assert await history(endpoints.nats, await say(endpoints.nats, "hi")) == ["hi"]
    assert await up.stop() == 0
