"""Commands that need a running or a configured deployment, and their errors without one."""

import asyncio
import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import nats
import psycopg
import pytest
from nats.aio.client import Client

from mnemon_consumers.app import VECTOR_WRITERS
from mnemon_infra.embedded.nats_server import NatsServer
from mnemon_infra.embedded.postgres import Postgres
from tests.support.processes.stack import TIMEOUT, CommandResult, Up, mnemon, until
from tests.support.servers.qdrant import URL, stack_environment

NOWHERE = {"MNEMON_NATS_URL": "nats://127.0.0.1:1", "DATABASE_URL": "postgresql://127.0.0.1:1/x"}


@pytest.mark.long
async def test_printed_next_steps_name_the_folder(shared: Up) -> None:
    tenant, folder = "next-steps", f"--data {shared.data}"
    assert shared.endpoints is not None
    async with await nats.connect(shared.endpoints.nats) as client:
        await client.jetstream().publish(f"chat.{tenant}.u1.-.message.v1", b"not json")

    async def run(*arguments: str) -> CommandResult:
        return await mnemon(*arguments, "--data", shared.data)

    async with asyncio.timeout(TIMEOUT):
        while "invalid_body" not in (listed := await run("dead", "list", "--tenant", tenant)).out:
            await asyncio.sleep(0.1)
    assert listed.out.endswith(f"mnemon dead show ID {folder}\n")
    letter = listed.out.splitlines()[1].split()[0]
    shown = await run("dead", "show", letter)
    assert (
        f"mnemon dead redrive {letter} {folder}. Or drop it: mnemon dead drop {letter} {folder}" in shown.out
    )
    assert (await run("dead", "drop", letter)).code == 0

    key = json.loads((await run("auth", "key", "create", "--tenant", tenant, "--json")).out)["id"]
    revoked = await run("auth", "key", "revoke", key)
    assert (revoked.code, revoked.out) == (0, f"revoked: {key}\n")
    user = ("--tenant", tenant, "--user", "u1")
    documents = f"List the documents: mnemon document list {' '.join(user)} {folder}"
    for arguments, step in (
        (("dead", "show", letter), f"List the dead letters: mnemon dead list {folder}"),
        (("dead", "redrive"), f"List the dead letters: mnemon dead list {folder}"),
        (("auth", "key", "revoke", key), f"List the keys: mnemon auth key list {folder}"),
        (("settings", "get", "nonsense"), f"List the settings: mnemon settings get {folder}"),
        (
            ("settings", "set", "recent_messages"),
            f"For example: recent_messages=20. List the settings: mnemon settings get {folder}",
        ),
        (
            ("get", "notes", *user),
            f"List the ids: mnemon read {' '.join(user)} {folder}. {documents}",
        ),
        (("get", "pf_001", *user), f"List the ids: mnemon read {' '.join(user)} {folder}"),
        (("get", "notes", "--scope", "documents", *user), documents),
    ):
        refused = await run(*arguments)
        assert refused.code != 0
        assert refused.err.splitlines()[-1] == f"  {step}"


async def test_api_keys_are_listed_with_the_second_of_their_creation(
    nats_url: str, connection: Client
) -> None:
    del connection  # it provisions the server
    assert (await mnemon("auth", "key", "list", MNEMON_NATS_URL=nats_url)).out == "no keys\n"
    await mnemon("auth", "key", "create", "--tenant", "acme", MNEMON_NATS_URL=nats_url)
    heading, row = (await mnemon("auth", "key", "list", MNEMON_NATS_URL=nats_url)).out.splitlines()
    assert heading.rstrip().endswith("created (UTC)")
    assert re.search(r"  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d$", row.rstrip())


async def test_status_of_a_healthy_stack_and_of_dead_letters(fresh_up: Up) -> None:
    endpoints = await fresh_up.start()
    found = await mnemon("status", "--data", fresh_up.data, "--json")
    health = json.loads(found.out)
    assert found.code == 0, found
    assert health["healthy"] is True
    assert health["problems"] == []
    assert set(health["broker"]["streams"]) == {"LOG", "WORK", "DEAD"}
    assert health["broker"]["streams"]["LOG"] == {"messages": 0, "bytes": 0, "last_seq": 0}
    assert health["broker"]["consumers"]["persist"]["pending"] == 0
    assert health["broker"]["services"] == {"mnemon": 1}
    assert health["broker"]["dead_letters"] == 0
    assert health["database"]["revision"] == health["database"]["head"]
    assert health["database"]["version"].startswith("18.")
    tied = set(health["vectors"]["one_process"])
    assert health["vectors"]["engine"] == ("embedded" if URL is None else "server")
    assert tied == (VECTOR_WRITERS | {"retrieve"} if URL is None else set())
    nothing = {"due": 0, "later": 0, "in_batches": 0, "dead_today": 0}
    models: dict[str, object] = {"error": None, "windows": nothing, "batches": [], "out_of_budget": []}
    assert health["models"] == models | {"failing": [], "given_up": []}

    shown = await mnemon("status", "--data", fresh_up.data)
    assert shown.code == 0
    assert "healthy" in shown.out
    assert "persist" in shown.out
    engine = "index, dedupe and retrieve run in one process" if URL is None else "a server, for any number"
    assert engine in shown.out

    async with await nats.connect(endpoints.nats) as client:
        await client.jetstream().publish("chat.acme.u1.-.message.v1", b"not json")

    async def dead_letters() -> int:
        found = await mnemon("status", "--data", fresh_up.data, "--json")
        return int(json.loads(found.out)["broker"]["dead_letters"])

    async with asyncio.timeout(TIMEOUT):
        while not await dead_letters():
            pass
    assert await dead_letters() == 1


@pytest.mark.long
async def test_status_names_each_problem(data: Path) -> None:
    data.mkdir()
    broker, database = NatsServer(data, None), Postgres(data, None)
    await broker.start()
    await database.start()
    servers = {"MNEMON_NATS_URL": broker.url, "DATABASE_URL": database.url}

    before = await mnemon("status", "--json", **servers)
    assert before.code == 1, before
    problems = json.loads(before.out)["problems"]
    assert any("mnemon provision" in problem for problem in problems)
    assert any("mnemon migrate" in problem for problem in problems)
    assert json.loads(before.out)["models"] is None

    provisioned = await mnemon("provision", "--json", **servers)
    assert provisioned.code == 0, provisioned
    assert {"what": "stream LOG", "action": "created", "detail": ""} in json.loads(provisioned.out)
    again = await mnemon("provision", "--json", **servers)
    assert {change["action"] for change in json.loads(again.out)} == {"unchanged"}
    migrated = await mnemon("migrate", **servers)
    assert migrated.code == 0, migrated
    assert "schema mnemon is at revision" in migrated.out
    assert (await mnemon("status", **servers)).code == 0
    absent = {"MNEMON_QDRANT_URL": "http://127.0.0.1:1", "MNEMON_QDRANT_GRPC_PORT": "1"}
    elsewhere = await mnemon("status", "--json", **servers, **absent)
    state = json.loads(elsewhere.out)
    assert elsewhere.code == 1
    assert (state["vectors"]["engine"], state["vectors"]["one_process"]) == ("server", [])
    assert state["vectors"]["error"].endswith("Start the server, or check MNEMON_QDRANT_URL")
    assert state["vectors"]["error"] in state["problems"]

    async with await nats.connect(broker.url) as client:
        await client.jetstream().publish("chat.acme.u1.-.message.v1", b'{"role": "user", "content": "hi"}')
    unread = await mnemon("status", **servers)
    assert unread.code == 1
    assert "which is not running" in unread.out

    await database.stop()
    await broker.stop()


async def test_provision_check_compares_and_changes_nothing(data: Path) -> None:
    data.mkdir()
    broker = NatsServer(data, None)
    await broker.start()
    servers = {"MNEMON_NATS_URL": broker.url}

    absent = await mnemon("provision", "--check", "--json", **servers)
    assert absent.code == 1, absent
    assert {each["action"] for each in json.loads(absent.out)} == {"missing"}
    assert "mnemon provision" in absent.err
    async with await nats.connect(broker.url) as client:
        assert await client.jetstream().streams_info() == []

        assert (await mnemon("provision", **servers)).code == 0
        assert (await mnemon("provision", "--check", **servers)).code == 0

        stream_context = client.jetstream()
        config = (await stream_context.stream_info("LOG")).config
        await stream_context.update_stream(config.evolve(duplicate_window=10))
        different = await mnemon("provision", "--check", "--json", **servers)
        assert different.code == 1, different
        assert [(each["what"], each["action"]) for each in json.loads(different.out) if each["detail"]] == [
            ("stream LOG", "different")
        ]
        assert (await stream_context.stream_info("LOG")).config.duplicate_window == 10
    await broker.stop()


@pytest.mark.long
async def test_run_joins_a_running_stack(up: Up) -> None:
    endpoints = await up.start("--only", "retrieve")
    async with await nats.connect(endpoints.nats) as client:
        await client.jetstream().publish("chat.acme.u1.-.message.v1", b'{"role": "user", "content": "hi"}')
    command = [sys.executable, "-m", "mnemon", "run", "persist", "--data", str(up.data)]
    process = subprocess.Popen(command, env={**os.environ, **stack_environment(up.data)})
    try:
        with psycopg.connect(endpoints.database, autocommit=True) as connection:

            def stored() -> bool:
                return connection.execute(f"SELECT content FROM {up.schema}.messages").fetchall() == [("hi",)]

            await until(stored)
    finally:
        process.terminate()
    assert process.wait(30) == 0


@pytest.mark.parametrize("command", [("run", "persist"), ("status",)])
async def test_command_without_servers_names_the_variables(command: tuple[str, ...]) -> None:
    found = await mnemon(*command)
    assert found.code == 3
    for name in ("MNEMON_NATS_URL", "DATABASE_URL", "PG_HOST", "--data"):
        assert name in found.err


@pytest.mark.parametrize(
    ("command", "named"), [("provision", "MNEMON_NATS_URL"), ("migrate", "DATABASE_URL")]
)
async def test_command_requires_only_the_servers_it_uses(command: str, named: str) -> None:
    found = await mnemon(command)
    assert found.code == 3
    assert [name for name in ("MNEMON_NATS_URL", "DATABASE_URL") if name in found.err] == [named]


@pytest.mark.parametrize("command", [("run", "persist"), ("status",), ("provision",), ("migrate",)])
async def test_command_on_stopped_folder_says_how_to_start(command: tuple[str, ...], tmp_path: Path) -> None:
    found = await mnemon(*command, "--data", tmp_path)
    assert found.code == 3
    assert f"mnemon up --data {tmp_path}" in found.err


@pytest.mark.parametrize("command", [("run", "persist"), ("status",), ("provision",), ("migrate",)])
async def test_unreachable_servers_are_named(command: tuple[str, ...]) -> None:
    found = await mnemon(*command, **NOWHERE)
    assert found.code == 3
    assert "Traceback" not in found.err


async def test_status_json_of_servers_that_do_not_answer() -> None:
    found = await mnemon("status", "--json", **NOWHERE)
    health = json.loads(found.out)
    assert found.code == 3
    assert health["reachable"] is False
    assert len(health["problems"]) == 2


@pytest.mark.parametrize(
    "command", [("run", "bogus"), ("up", "--only", "persist,bogus"), ("up", "--only", "")]
)
async def test_invalid_names_are_refused(command: tuple[str, ...], tmp_path: Path) -> None:
    found = await mnemon(*command, *(("--data", tmp_path) if command[0] == "up" else ()))
    assert found.code == 2
    assert "Choose from: persist, index, dedupe, compact, extract, maintain, retrieve" in found.err


@pytest.mark.parametrize("command", ["up", "try"])
async def test_data_folder_that_is_a_file_is_refused(command: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = await mnemon(command, "--data", tmp_path / "file")
    assert found.code == 2
    assert f"{tmp_path / 'file'} cannot be used: File exists" in found.err
    assert "Make it writable, free space on its disk, or choose another folder: --data DIR" in found.err


@pytest.mark.parametrize("command", [("rebuild", "--list"), ("reindex",)])
async def test_folder_that_cannot_be_locked_is_refused(command: tuple[str, ...], tmp_path: Path) -> None:
    for name in ("nats", "lock"):
        (tmp_path / name).mkdir()
    found = await mnemon(*command, "--data", tmp_path)
    assert (found.code, f"{tmp_path} cannot be used: Is a directory" in found.err) == (2, True)


async def test_missing_data_folder_is_not_created(tmp_path: Path) -> None:
    found = await mnemon("reindex", "--data", tmp_path / "none")
    assert found.code == 3
    assert f"mnemon up --data {tmp_path / 'none'}" in found.err
    assert not (tmp_path / "none").exists()


async def test_folder_without_stack_is_not_reindexed(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    found = await mnemon("reindex", "--data", tmp_path)
    assert found.code == 3
    assert f"there is no stack in {tmp_path}" in found.err
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


async def test_impossible_command_asks_no_confirmation(tmp_path: Path) -> None:
    found = await mnemon("erase", "acme", "u1", "--data", tmp_path)
    assert found.code == 3
    assert "for good?" not in found.err


async def test_invalid_variable_is_named(tmp_path: Path) -> None:
    found = await mnemon("up", "--data", tmp_path, PG_HOST="localhost", PG_PORT="high")
    assert found.code == 2
    assert "PG_PORT" in found.err


async def test_version_and_help_are_printed() -> None:
    assert (await mnemon("--version")).out == f"mnemon {version('mnemon')}\n"
    for command in ("up", "run", "provision", "migrate", "status"):
        told = await mnemon(command, "--help")
        assert told.code == 0
        assert "Example:" in told.out


def test_the_base_install_says_what_to_install() -> None:
    without_typer = "import sys; sys.modules['typer'] = None; from mnemon.__main__ import main; main()"
    found = subprocess.run([sys.executable, "-c", without_typer], capture_output=True, text=True, check=False)
    assert found.returncode == 3
    assert found.stderr == "mnemon: typer is not installed: pip install 'mnemon[all]'\n"
