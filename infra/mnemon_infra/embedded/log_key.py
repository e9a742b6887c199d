"""Hash of the key that encrypts a folder's log, recorded so that nats-server starts with no other key.

A nats-server that is started with another key, or without a key, reports that in its log file only, and
answers as if no streams existed. New streams would then replace the encrypted ones.
"""

import hashlib
import json
import secrets
from hmac import compare_digest
from pathlib import Path
from typing import Final, NamedTuple

from mnemon_infra.process.data_folder import replace_file, sync_path

VARIABLE: Final = "MNEMON_LOG_KEY"

RECORD: Final = "log-key.json"
"""File in the data folder of nats-server that identifies the key; the key cannot be derived from it."""

_REPLACE_RECORD: Final = (
    f"put {RECORD} back from a copy of this folder, or restore a backup into a new folder: `mnemon restore "
    "SOURCE --data DIR`"
)

# A guess takes 16 MiB of memory and about 50 ms.
_COST: Final = {"n": 2**14, "r": 8, "p": 1}


class LogKeyRefused(Exception):
    """The folder's log cannot be opened with this key, or without a key; the message names the next step."""


class _Record(NamedTuple):
    salt: bytes
    scrypt: bytes


def check_log_key(home: Path, key: str | None) -> None:
    """Check that the streams in a folder are encrypted with this key; without streams, record the key.

    Args:
        home: the data folder of nats-server.
        key: the key to start with; None leaves the log unencrypted.

    Raises:
        LogKeyRefused: the streams are encrypted with another key, or are encrypted although `key` is None,
            or are not encrypted although a key is given; or the record of their key is missing or damaged.
    """
    record = _read_record(home / RECORD)
    encrypted = record is not None or any(home.glob("jetstream/*/streams/*/meta.key"))
    if key is None:
        if encrypted:
            raise LogKeyRefused(
                f"the log in {home} is encrypted, and {VARIABLE} is not set: set {VARIABLE} to the key that "
                "encrypted the log"
            )
        return
    if record is not None:
        if not compare_digest(_hash_key(key, record.salt), record.scrypt):
            raise LogKeyRefused(
                f"the log in {home} is encrypted with a key other than {VARIABLE}: set {VARIABLE} to the "
                "key that encrypted the log"
            )
        return
    if encrypted:
        raise LogKeyRefused(
            f"the log in {home} is encrypted, and its key record {RECORD} is missing: {_REPLACE_RECORD}"
        )
    if any(home.glob("jetstream/*/streams/*")):
        raise LogKeyRefused(
            f"the log in {home} is not encrypted, and {VARIABLE} is set: unset {VARIABLE}, or choose "
            "a new folder (--data DIR); docs/security.md describes how to encrypt an existing log"
        )
    _write_record(home / RECORD, key)


def _read_record(path: Path) -> _Record | None:
    try:
        record = json.loads(path.read_bytes())
        return _Record(bytes.fromhex(record["salt"]), bytes.fromhex(record["scrypt"]))
    except FileNotFoundError:
        return None
    except (ValueError, LookupError, TypeError) as error:
        raise LogKeyRefused(f"the key record {path} is damaged: {_REPLACE_RECORD}") from error


def _write_record(path: Path, key: str) -> None:
    salt = secrets.token_bytes(16)
    replace_file(path, json.dumps({"salt": salt.hex(), "scrypt": _hash_key(key, salt).hex()}))
    # The record must be on the disk before any stream.
    for written in (path, path.parent):
        sync_path(written)


def _hash_key(key: str, salt: bytes) -> bytes:
    return hashlib.scrypt(key.encode(), salt=salt, **_COST)
