"""The key that a folder's log is encrypted with: which one it is, so that none other is started with.

A nats-server that is started with another key, or with none, says so in its own log only, and answers as if
there were no streams. They would be made anew over the encrypted ones.
"""

import hashlib
import json
import os
import secrets
from hmac import compare_digest
from pathlib import Path
from typing import Final, TypedDict

from mnemon_infra.process.data_folder import replace

VARIABLE: Final = "MNEMON_LOG_KEY"

RECORD: Final = "log-key.json"
"""Beside the streams. It tells a key from another; the key cannot be had from it."""

# 16 MiB and some 50 ms for each guess.
_COST: Final = {"n": 2**14, "r": 8, "p": 1}


class LogKeyRefused(Exception):
    """The folder's log is not opened with this key, or not without one; the message has the next step."""


class _Record(TypedDict):
    salt: str
    scrypt: str


def check_log_key(home: Path, key: str | None) -> None:
    """Look whether the streams in a folder are encrypted with this key; where there are none, they will be.

    Args:
        home: what nats-server keeps its data in.
        key: the key to start with; None leaves the log as it is.

    Raises:
        LogKeyRefused: they are not.
    """
    record = _read(home / RECORD)
    encrypted = record is not None or any(home.glob("jetstream/*/streams/*/meta.key"))
    if key is None:
        if encrypted:
            raise LogKeyRefused(
                f"the log in {home} is encrypted, and {VARIABLE} is not set: set it to the key that the log "
                "was made with"
            )
        return
    if record is not None:
        if not compare_digest(_hash(key, record["salt"]), record["scrypt"]):
            raise LogKeyRefused(
                f"the log in {home} is encrypted with another key than {VARIABLE} has now: set the one that "
                "the log was made with"
            )
        return
    if encrypted:
        raise LogKeyRefused(
            f"the log in {home} is encrypted, and {RECORD}, which tells the key, is gone: put it back from a "
            "backup of the folder"
        )
    if any(home.glob("jetstream/*/streams/*")):
        raise LogKeyRefused(
            f"the log in {home} is not encrypted, and {VARIABLE} is set: unset it, or choose a new folder "
            "(--data DIR); how a log is encrypted afterwards is told in docs/security.md"
        )
    _write(home / RECORD, key)


def _read(path: Path) -> _Record | None:
    try:
        record: _Record = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    return record


def _write(path: Path, key: str) -> None:
    salt = secrets.token_hex(16)
    replace(path, json.dumps({"salt": salt, "scrypt": _hash(key, salt)}))
    # Streams must not be on the disk before it is.
    for written in (path, path.parent):
        descriptor = os.open(written, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _hash(key: str, salt: str) -> str:
    return hashlib.scrypt(key.encode(), salt=bytes.fromhex(salt), **_COST).hex()
