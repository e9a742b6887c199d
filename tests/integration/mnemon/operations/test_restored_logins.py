"""A restored deployment requires logins if the deployment of the backup did."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mnemon.cli.app import app
from mnemon.operations.backup.deployment_record import DeploymentRecord
from mnemon.operations.backup.encryption import NoCipher
from mnemon.operations.backup.manifest import Manifest
from mnemon.operations.backup.repository import BackupRepository
from mnemon.operations.backup.run import run_backup
from mnemon.operations.restore.logins import (
    ServerOpen,
    require_closed_server,
    restore_folder_logins,
    restore_login_file,
)
from mnemon.operations.restore.run import Backup, open_backup
from mnemon_infra.broker.connection import BrokerRefused, connect
from mnemon_infra.broker.provisioning.authorization import Authorization, Limits, Login
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.embedded.logins import FolderLogins
from mnemon_infra.embedded.nats_server import NatsServer
from mnemon_infra.settings.store import change_settings
from mnemon_infra.storage.object_store import LocalStore
from tests.support.stock_client import Stock


def backup_of(logins: str | None, *, needs_login: bool = True) -> Backup:
    manifest = Manifest(
        mnemon="1", backup_id="b", created_at="now", is_complete=True, position=0, needs_login=needs_login
    )
    place = BackupRepository(LocalStore(Path("nowhere")), NoCipher())
    return Backup(place, manifest, DeploymentRecord(logins=logins))


@asynccontextmanager
async def running(data: Path) -> AsyncIterator[NatsServer]:
    server = NatsServer(data, None)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def folder(tmp_path: Path, name: str) -> Path:
    data = tmp_path / name
    data.mkdir()
    return data


async def test_passwords_of_tenants_stay_and_others_are_new(tmp_path: Path) -> None:
    data, restored = folder(tmp_path, "data"), folder(tmp_path, "restored")
    with FolderLogins(data).edit() as users:
        acme = users.issue_tenant_login("acme")
        users.replace_tenant_limits("acme", Limits(payload=4096))
    place = BackupRepository(LocalStore(tmp_path / "backup"), NoCipher())
    async with running(data) as server:
        async with await connect(server.build_login_url("operator"), name="test") as connection:
            await provision(connection)
            await Stock(connection).say("hello")
            await change_settings(connection, lambda _: {"policy": {"max_length": 77}})
        text = FolderLogins(data).path.read_text()
        async with await connect(server.build_login_url("worker"), name="test") as connection:
            result = await run_backup(connection, place, text, lambda *_: None)
    assert result.manifest.events == 1
    stored = b"".join(each.read_bytes() for each in (tmp_path / "backup").rglob("*") if each.is_file())
    operator = FolderLogins(data).read_login("operator")
    assert operator.password.encode() not in stored
    assert acme.password.encode() not in stored

    backup = await open_backup(place)
    assert backup.manifest.needs_login
    assert len(backup.record.settings) == 1
    logins = restore_folder_logins(restored, backup)
    assert (logins.is_closed, logins.kept, logins.is_lost) == (True, ["tenant-acme"], False)
    assert restore_folder_logins(restored, backup).is_closed  # a restore that continues
    async with running(restored) as server:
        for refused in server.url, operator.add_to_url(server.url):
            with pytest.raises(BrokerRefused):
                await connect(refused, name="test")
        for accepted in (
            acme.add_to_url(server.url),
            server.build_login_url("operator"),
            server.build_login_url("worker"),
        ):
            await (await connect(accepted, name="test")).close()
    listed = {
        each.user: each for each in Authorization.from_file(FolderLogins(restored).path).list_permissions()
    }
    assert listed["tenant-acme"].limits == {"payload": 4096}


async def test_a_folder_is_closed_if_the_logins_are_unknown(tmp_path: Path) -> None:
    restored = folder(tmp_path, "restored")
    logins = restore_folder_logins(restored, backup_of(None))
    assert (logins.is_closed, logins.is_lost) == (True, True)
    async with running(restored) as server:
        with pytest.raises(BrokerRefused):
            await connect(server.url, name="test")


async def test_a_folder_stays_open_if_there_were_no_logins(tmp_path: Path) -> None:
    restored = folder(tmp_path, "restored")
    assert not restore_folder_logins(restored, backup_of(None, needs_login=False)).is_closed
    assert not FolderLogins(restored).exist


async def test_logins_of_a_folder_with_streams_stay(tmp_path: Path) -> None:
    existing = folder(tmp_path, "existing")
    async with running(existing) as server, await connect(server.url, name="test") as connection:
        await provision(connection)
    assert not restore_folder_logins(existing, backup_of("x")).is_closed
    assert not FolderLogins(existing).exist


def test_file_that_is_not_of_mnemon_auth_is_refused(tmp_path: Path) -> None:
    place = BackupRepository(LocalStore(tmp_path / "backup"), NoCipher())

    async def write_backup() -> None:
        record = await place.write_file("deployment/", ".json", DeploymentRecord().encode())
        manifest = backup_of(None).manifest
        await place.write_manifest(manifest.model_copy(update={"deployment": record}))

    asyncio.run(write_backup())
    foreign = FolderLogins(tmp_path / "restored").path
    foreign.parent.mkdir(parents=True)
    foreign.write_text("authorization { user: me }")

    arguments = ["restore", str(tmp_path / "backup"), "--data", str(tmp_path / "restored")]
    result = CliRunner().invoke(app, arguments)

    assert result.exit_code == 2, repr(result.exception)
    assert f"{foreign} does not have the form that `mnemon auth` writes" in result.stderr
    assert foreign.read_text() == "authorization { user: me }"


async def test_an_open_server_is_refused(tmp_path: Path) -> None:
    users = Authorization({"MNEMON": {"users": []}})
    users.issue_role_login("operator")
    text, file = users.to_text(), tmp_path / "etc" / "mnemon.conf"
    async with (
        running(folder(tmp_path, "open")) as server,
        await connect(server.url, name="test") as connection,
    ):
        with pytest.raises(ServerOpen, match="write the logins of the backup with --logins FILE"):
            require_closed_server(connection, backup_of(text), None)
        assert restore_login_file(file, backup_of(text))
        with pytest.raises(ServerOpen, match=f'add `include "{file}"` to nats-server.conf'):
            require_closed_server(connection, backup_of(text), file)
        with pytest.raises(ServerOpen, match="make logins with `mnemon auth operator"):
            require_closed_server(connection, backup_of(None), None)
        assert not require_closed_server(connection, backup_of(None, needs_login=False), None).is_closed
    assert file.read_text() == text
    file.write_text("mine")
    assert not restore_login_file(file, backup_of(text))
    assert file.read_text() == "mine"


async def test_a_closed_server_is_accepted(tmp_path: Path) -> None:
    data = folder(tmp_path, "closed")
    with FolderLogins(data).edit():
        pass
    async with (
        running(data) as server,
        await connect(server.build_login_url("operator"), name="test") as connection,
    ):
        assert require_closed_server(connection, backup_of("x"), None).is_closed


def test_logins_that_exist_are_kept() -> None:
    mine, others = Authorization({"MNEMON": {"users": []}}), Authorization({"MNEMON": {"users": []}})
    login: Login = mine.issue_tenant_login("acme")
    others.issue_tenant_login("acme")
    others.issue_tenant_login("other")
    before = mine.to_text()
    assert mine.add_tenants(others) == ["tenant-other"]
    assert login.user in before
    assert mine.add_tenants(others) == []
