"""Bucket of settings: reading of its newest entries and of their history, and writing of entries."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Final, NamedTuple

import structlog
from nats.aio.client import Client
from nats.js.api import Header
from nats.js.errors import (
    APIError,
    BucketNotFoundError,
    KeyNotFoundError,
    KeyWrongLastSequenceError,
    NotFoundError,
)
from nats.js.kv import KeyValue

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.settings.document import NOTHING, Document, parse_document, resolve_settings
from mnemon_contracts.settings.groups import DEFAULT_KEY
from mnemon_contracts.streams import SETTINGS
from mnemon_infra.broker.key_value import TIMEOUT, read_present_entries, stop_watch
from mnemon_infra.delivery import read_storage_time

log = structlog.get_logger("settings")

_BY: Final = "Mnemon-By"
"""Header with the name of the connection that set an entry, such as `mnemon-admin`."""

_OVERTAKEN: Final = (10071, 10164)
"""Error codes of the server for a key that has changed since it was read."""


class SettingsNotProvisioned(Exception):
    """The settings bucket is absent; the next step is `mnemon provision`."""


class SettingsEntry(NamedTuple):
    """The newest entry of a key in the bucket of settings."""

    document: Document
    """The entry, parsed; for an invalid entry, see `read_newest_default` and `read_newest_of_tenant`."""
    revision: int
    """Revision of the entry; 0 if the key was never written."""
    body: bytes
    """The entry's bytes as stored."""


async def open_bucket(connection: Client) -> KeyValue:
    """Open the bucket of settings.

    Raises:
        SettingsNotProvisioned: the bucket is absent.
        nats.errors.Error: the server does not answer.
    """
    try:
        return await connection.jetstream(timeout=TIMEOUT).key_value(SETTINGS)
    except BucketNotFoundError as error:
        raise SettingsNotProvisioned(
            "the bucket `settings` does not exist: run `mnemon provision`"
        ) from error


async def read_newest_default(bucket: KeyValue) -> SettingsEntry:
    """Return the newest entry of the general settings.

    If the entry is not valid, its `document` is that of the newest valid entry, or `NOTHING` without one.
    """
    body, revision = await _read_newest(bucket, DEFAULT_KEY)
    try:
        return SettingsEntry(parse_default(body), revision, body)
    except InvalidBody as error:
        log_invalid_settings(DEFAULT_KEY, revision, error)
    for former in reversed(await read_entries(bucket, DEFAULT_KEY)):
        with suppress(InvalidBody):
            return SettingsEntry(parse_default(former.value), revision, body)
    return SettingsEntry(NOTHING, revision, body)


async def read_newest_of_tenant(bucket: KeyValue, key: str) -> SettingsEntry:
    """Return the newest entry of a tenant's own settings.

    If the entry is not a JSON object, its `document` is `NOTHING`.
    """
    body, revision = await _read_newest(bucket, key)
    try:
        return SettingsEntry(parse_document(body), revision, body)
    except InvalidBody as error:
        log_invalid_settings(key, revision, error)
        return SettingsEntry(NOTHING, revision, body)


async def _read_newest(bucket: KeyValue, key: str) -> tuple[bytes, int]:
    try:
        # A tenant's key may have characters that nats-py refuses; the server takes any token.
        entry = await bucket.get(key, validate_keys=False)
    except KeyNotFoundError as error:
        return b"", error.entry.revision if error.entry else 0  # a deletion has a revision too
    return entry.value or b"", entry.revision or 0


async def put_entry(connection: Client, key: str, body: bytes, last: int) -> int:
    """Write an entry with the connection's name in a header, which nats-py's `update` cannot send.

    `last` is the revision that the newest entry must have; 0 if no entry may exist.

    Returns:
        The entry's revision.

    Raises:
        KeyWrongLastSequenceError: the newest entry has another revision than `last`.
        nats.errors.Error: it is unknown whether the entry is written.
    """
    headers = {
        Header.EXPECTED_LAST_SUBJECT_SEQUENCE.value: str(last),
        _BY: str(connection.options["name"] or ""),
    }
    try:
        acknowledged = await connection.jetstream(timeout=TIMEOUT).publish(
            f"$KV.{SETTINGS}.{key}", body, headers=headers
        )
    except APIError as error:
        if error.err_code in _OVERTAKEN:
            raise KeyWrongLastSequenceError(description=error.description) from error
        raise
    return acknowledged.seq


class EntryOrigin(NamedTuple):
    """Writer and original time of an entry in the bucket of settings.

    Attributes:
        by: name of the connection that set the entry; None if the entry does not name a connection.
        at: the time at which the entry was first set, if a restore has written it again since; otherwise
            None.
    """

    by: str | None
    at: datetime | None


async def read_origin(connection: Client, revision: int) -> EntryOrigin:
    """Return the origin of the entry with a revision, from the headers of the entry.

    Both fields are None if the entry is no longer kept.
    """
    try:
        message = await connection.jetstream(timeout=TIMEOUT).get_msg(f"KV_{SETTINGS}", revision)
    except NotFoundError:
        return EntryOrigin(None, None)
    headers = message.headers or {}
    restored = read_storage_time(headers, revision, 0)
    at = datetime.fromtimestamp(restored / 1e9, UTC) if restored else None
    return EntryOrigin(headers.get(_BY) or None, at)


async def read_entries(bucket: KeyValue, key: str) -> list[KeyValue.Entry]:
    """Return the entries of a key that the bucket keeps, oldest first, deletions included."""
    watcher = await bucket.watch(key, include_history=True)
    try:
        return await read_present_entries(watcher)
    finally:
        await stop_watch(watcher)


def parse_default(body: bytes | None) -> Document:
    """Parse a document of the general settings.

    Raises:
        InvalidBody: the document is not valid, or its settings contradict each other.
    """
    document = parse_document(body)
    resolve_settings(document)
    return document


def log_invalid_settings(key: str, revision: int | None, error: ValueError) -> None:
    """Log that an entry is ignored because it is not valid."""
    log.error("settings entry ignored as invalid", key=key, revision=revision, error=str(error))
