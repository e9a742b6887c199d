"""The commands `mnemon backup` and `mnemon restore`."""

import json
import re
from pathlib import Path
from uuid import uuid4

import pyrage
import pytest

from mnemon_contracts.events.erasure import UserErasedV1
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.broker.streams.applied_position import read_log_end
from mnemon_infra.storage.erasure_register import ErasureRegister, RegisterEntry
from tests.support.processes.stack import CommandResult, Up, mnemon
from tests.support.stock_client import Stock


@pytest.fixture
def identity(tmp_path: Path) -> pyrage.x25519.Identity:
    identity = pyrage.x25519.Identity.generate()
    (tmp_path / "key.txt").write_text(str(identity))
    return identity


async def test_backup_is_checked_and_continued(shared: Up, tmp_path: Path) -> None:
    folder = tmp_path / "backup"
    assert shared.endpoints
    async with await connect(shared.endpoints.nats, name="test") as connection:
        position = await Stock(connection).say("hello", f"t{uuid4().hex[:8]}.u1.-")
    first = json.loads((await mnemon("backup", folder, "--data", shared.data, "--json")).out)
    second = await mnemon("backup", folder, "--data", shared.data)
    checked = json.loads((await mnemon("restore", folder, "--check", "--json")).out)
    assert first["position"] >= position
    assert first["events"] == first["new_events"]
    assert second.code == 0
    assert f"mnemon restore {folder} --check" in second.out
    assert re.search(r", [1-9][\d.]* (bytes|kB|MB) in all;", second.out)
    assert checked["damaged"] is False
    assert checked["position"] >= first["position"]


async def test_damage_is_named(shared: Up, tmp_path: Path) -> None:
    folder = tmp_path / "backup"
    assert shared.endpoints
    async with await connect(shared.endpoints.nats, name="test") as connection:
        await Stock(connection).say("hello", f"t{uuid4().hex[:8]}.u1.-")
    assert (await mnemon("backup", folder, "--data", shared.data)).code == 0
    (segment, *_) = (folder / "segments").iterdir()
    segment.write_bytes(segment.read_bytes()[:-1])
    result = await mnemon("restore", folder, "--check")
    assert result.code == 3
    assert f"{segment.name} in {folder} is damaged" in result.err


async def test_encrypted_backup_needs_its_key(
    shared: Up, tmp_path: Path, identity: pyrage.x25519.Identity
) -> None:
    folder = tmp_path / "backup"
    recipient = str(identity.to_public())
    made = await mnemon("backup", folder, "--recipient", recipient, "--data", shared.data)
    assert made.code == 0
    assert f"mnemon restore {folder} --identity FILE --check" in made.out
    without = await mnemon("restore", folder, "--check")
    plain = await mnemon("backup", folder, "--data", shared.data)
    (tmp_path / "other.txt").write_text(str(pyrage.x25519.Identity.generate()))
    wrong = await mnemon("restore", folder, "--identity", tmp_path / "other.txt", "--check")
    right = await mnemon("restore", folder, "--identity", tmp_path / "key.txt", "--check")
    assert (without.code, plain.code, wrong.code, right.code) == (3, 3, 2, 0)
    assert "is encrypted: give --passphrase-file" in without.err
    assert "is encrypted: give --passphrase-file" in plain.err
    assert "cannot be decrypted with this identity" in wrong.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("restore", "{folder}/none", "--check"), 3, "there is no backup in"),
        (("restore", "gs://bucket/x", "--check"), 3, "name a folder, or a bucket as s3://BUCKET/PREFIX"),
        (("backup", "{folder}/b", "--recipient", "x", "--data", "{data}"), 2, "a recipient cannot be used"),
        (("backup", "{folder}/file/b", "--data", "{data}"), 3, "cannot be written: Not a directory"),
        (("backup", "{data}", "--data", "{data}"), 3, "is the data folder of a stack: name another folder"),
        (("backup", "{folder}/b", "--logins", "{folder}/no", "--data", "{data}"), 2, "no does not exist"),
        (("backup", "{folder}/b", "--logins", "{folder}/file", "--data", "{data}"), 2, "was not written by"),
    ],
)
async def test_wrong_use_names_the_next_step(
    shared: Up, tmp_path: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    (tmp_path / "file").write_text("text")
    places = {"folder": tmp_path, "data": shared.data}
    result = await mnemon(*(each.format(**places) for each in arguments))
    assert (result.code, message in result.err) == (code, True), result.err


async def test_a_running_folder_is_not_restored_into(shared: Up, tmp_path: Path) -> None:
    assert (await mnemon("backup", tmp_path / "b", "--data", shared.data)).code == 0
    result = await mnemon("restore", tmp_path / "b", "--data", shared.data)
    assert result.code == 2
    assert "is running" in result.err


@pytest.mark.long
async def test_a_folder_of_an_unfinished_restore_does_not_start(
    shared: Up, tmp_path: Path, data: Path
) -> None:
    assert shared.endpoints
    async with await connect(shared.endpoints.nats, name="test") as connection:
        await Stock(connection).say("hello", f"t{uuid4().hex[:8]}.u1.-")
    assert (await mnemon("backup", tmp_path / "b", "--data", shared.data)).code == 0
    (segment,) = (tmp_path / "b" / "segments").iterdir()
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-1])
    damaged = await mnemon("restore", tmp_path / "b", "--data", data)
    started = await mnemon("up", "--data", data)
    segment.write_bytes(whole)
    continued = await mnemon("restore", tmp_path / "b", "--data", data)
    assert (damaged.code, started.code, continued.code) == (3, 3, 0), continued.err
    assert segment.name in damaged.err
    assert "run the same `mnemon restore` again" in started.err
    assert (await mnemon("audit", "--data", data)).code == 0


@pytest.mark.long
async def test_a_folder_with_memory_is_refused_and_another_one_suggested(
    shared: Up, tmp_path: Path, data: Path
) -> None:
    assert shared.endpoints
    async with await connect(shared.endpoints.nats, name="test") as connection:
        place = f"t{uuid4().hex[:8]}.u1.-"
        await Stock(connection).say("hello", place)
        assert (await mnemon("backup", tmp_path / "former", "--data", shared.data)).code == 0
        await Stock(connection).say("hello again", place)
    assert (await mnemon("backup", tmp_path / "latter", "--data", shared.data)).code == 0
    assert (await mnemon("restore", tmp_path / "former", "--data", data)).code == 0
    refused = await mnemon("restore", tmp_path / "latter", "--data", data)
    assert refused.code == 2
    assert f"{data} already has events, at least up to log position" in refused.err
    assert "Restore into a new folder: --data DIR" in refused.err
    assert "MNEMON_DATABASE_SCHEMA" not in refused.err


@pytest.mark.long
async def test_restore_fills_configured_servers(
    shared: Up, tmp_path: Path, nats_url: str, database_url: str
) -> None:
    assert shared.endpoints
    tenant = f"t{uuid4().hex[:8]}"
    async with await connect(shared.endpoints.nats, name="test") as connection:
        await Stock(connection).say("hello", f"{tenant}.u1.-")
    backup = json.loads((await mnemon("backup", tmp_path / "b", "--data", shared.data, "--json")).out)
    servers = {
        "MNEMON_NATS_URL": nats_url,
        "DATABASE_URL": database_url,
        "MNEMON_DATABASE_SCHEMA": f"test_{uuid4().hex[:12]}",
    }

    async def restore(*arguments: str | Path) -> CommandResult:
        return await mnemon("restore", tmp_path / "b", *arguments, **servers)

    result = await restore()
    assert result.code == 0, result.err
    assert "warning: no erasure register: erasures after the backup are unknown" in result.err
    assert "{" not in result.err  # log lines are not printed
    assert "Next: mnemon run persist index" in result.out
    async with await connect(nats_url, name="test") as connection:
        assert await read_log_end(connection.jetstream()) == backup["position"]
        assert {each.action for each in await provision(connection)} == {"unchanged"}
    assert (await mnemon("audit", **servers)).code == 0
    again = await restore()  # resumes, as after a kill during the replay
    assert (again.code, "erasure" in again.out) == (0, False)
    assert "An earlier run has restored" in again.out

    event = UserErasedV1(up_to_seq=2**53 - 1)
    entry = RegisterEntry(tenant=tenant, user="u1", event_id="e", position=9**9, at=2**62, event=event)
    await ErasureRegister.open(tmp_path / "register").add(entry)
    later = await restore("--register", tmp_path / "register")
    assert later.code == 0, later.err
    assert "applied again" not in later.out
    assert "This run applied no erasures: an earlier run had finished the log" in later.out

    async with await connect(shared.endpoints.nats, name="test") as connection:
        await Stock(connection).say("more", f"{tenant}.u1.-")
    await mnemon("backup", tmp_path / "b", "--data", shared.data)
    refused = await restore()
    assert refused.code == 2
    position = f"{backup['position']:,}"
    assert f"has rows of events, at least up to position {position}: name a new schema" in refused.err
