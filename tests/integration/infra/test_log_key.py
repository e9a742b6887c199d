"""Encryption of the log on the disk, and refusal of other keys."""

import json
from pathlib import Path

import pytest

from mnemon_contracts.streams import LOG
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.embedded.log_key import RECORD, LogKeyRefused
from mnemon_infra.embedded.nats_server import NatsServer

# Keys that the syntax of the server's configuration could read as a number, as quotes, and as a variable.
KEYS = ["1234567890123456", "a \"quoted\\\" 'key'; with # all # of it", "$HOME"]

TEXT = b'{"role": "user", "content": "Matilda keeps llamas"}'
SUBJECT = "chat.acme.Ferdinand.-.message.v1"


async def _write(folder: Path, key: str | None) -> None:
    server = NatsServer(folder, None, key)
    await server.start()
    connection = await connect(server.url, name="test")
    await provision(connection)
    await connection.jetstream().publish(SUBJECT, TEXT, stream=LOG)
    await connection.close()
    await server.stop()


def _on_disk(folder: Path, wanted: bytes) -> list[str]:
    """Return the names of the files that contain `wanted`."""
    return [file.name for file in folder.rglob("*") if file.is_file() and wanted in file.read_bytes()]


async def test_without_a_key_the_files_contain_plain_text(tmp_path: Path) -> None:
    await _write(tmp_path, None)
    assert _on_disk(tmp_path, b"Matilda keeps llamas")
    assert _on_disk(tmp_path, b"Ferdinand")


@pytest.mark.parametrize("key", [KEYS[0], *(pytest.param(each, marks=pytest.mark.long) for each in KEYS[1:])])
async def test_with_a_key_the_files_contain_no_plain_text_and_the_log_is_readable(
    tmp_path: Path, key: str
) -> None:
    await _write(tmp_path, key)
    for secret in (b"Matilda keeps llamas", b"Ferdinand", key.encode()):
        assert _on_disk(tmp_path, secret) == []

    server = NatsServer(tmp_path, None, key)
    await server.start()
    connection = await connect(server.url, name="test")
    assert (await connection.jetstream().get_msg(LOG, 1)).data == TEXT
    await connection.close()
    await server.stop()


@pytest.mark.parametrize(
    ("written", "opened", "why"),
    [
        ("one", "another", "with a key other than MNEMON_LOG_KEY: set MNEMON_LOG_KEY"),
        pytest.param(
            "one",
            None,
            "is encrypted, and MNEMON_LOG_KEY is not set: set MNEMON_LOG_KEY",
            marks=pytest.mark.long,
        ),
        pytest.param(
            None,
            "one",
            "is not encrypted, and MNEMON_LOG_KEY is set: unset MNEMON_LOG_KEY",
            marks=pytest.mark.long,
        ),
    ],
)
async def test_another_key_is_refused_and_harms_nothing(
    tmp_path: Path, written: str | None, opened: str | None, why: str
) -> None:
    await _write(tmp_path, written)
    with pytest.raises(LogKeyRefused, match=why):
        await NatsServer(tmp_path, None, opened).start()
    await _write(tmp_path, written)
    server = NatsServer(tmp_path, None, written)
    await server.start()
    connection = await connect(server.url, name="test")
    assert (await connection.jetstream().stream_info(LOG)).state.messages == 2
    await connection.close()
    await server.stop()


@pytest.mark.parametrize("key", [None, "one"])
async def test_an_encrypted_log_is_known_without_its_record(tmp_path: Path, key: str | None) -> None:
    await _write(tmp_path, "one")
    (tmp_path / "nats" / RECORD).unlink()
    with pytest.raises(LogKeyRefused, match="is encrypted"):
        await NatsServer(tmp_path, None, key).start()


@pytest.mark.parametrize(
    "record",
    [
        "",
        "{}",
        "[]",
        '{"salt": "x", "scrypt": "y"}',
        '{"salt": "00", "scrypt": "y"}',
        '{"salt": "00", "scrypt": "ы"}',
        "\0",
    ],
)
async def test_a_damaged_key_record_is_refused_with_the_next_step(tmp_path: Path, record: str) -> None:
    (tmp_path / "nats").mkdir()
    (tmp_path / "nats" / RECORD).write_text(record)
    with pytest.raises(LogKeyRefused, match=f"is damaged: put {RECORD} back"):
        await NatsServer(tmp_path, None, "one").start()


async def test_two_folders_with_one_key_do_not_show_it(tmp_path: Path) -> None:
    records = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        await _write(tmp_path / name, "one")
        record = tmp_path / name / "nats" / RECORD
        assert record.stat().st_mode & 0o077 == 0
        records.append(json.loads(record.read_bytes())["scrypt"])
    assert len(set(records)) == 2
