"""History of settings, and rollback to a former revision."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from nats.aio.client import Client
from nats.js.errors import BadRequestError, KeyNotFoundError
from nats.js.kv import KeyValue

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.settings.document import (
    NOTHING,
    Document,
    flatten_document,
    parse_document,
    resolve_settings,
)
from mnemon_contracts.settings.groups import DEFAULT_KEY, SettingsV1, build_settings_key
from mnemon_infra.broker.provisioning.topology import SETTINGS_KEPT
from mnemon_infra.settings.bucket import (
    EntryOrigin,
    open_bucket,
    read_entries,
    read_newest_default,
    read_origin,
)
from mnemon_infra.settings.store import change_settings


class NoSuchRevision(Exception):
    """The revision cannot be restored: it is not stored for these settings, or is a deletion."""


class SettingChange(NamedTuple):
    """Change of one setting. `before` and `after` contain its value, or nothing where it was not set."""

    setting: str
    before: tuple[Any, ...]
    after: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Revision:
    """One entry in the history of settings, with the settings that it changed."""

    revision: int
    at: datetime
    changes: tuple[SettingChange, ...]
    """Changes from the previous readable entry; for the oldest kept entry, all its settings."""
    deleted: bool = False
    problem: str | None = None
    """The reason why the entry is not valid now; None if the entry is valid."""
    by: str | None = None
    """Name of the connection that wrote the entry, such as `mnemon-admin`; None if it has no name."""


async def read_history(connection: Client, tenant: str | None = None) -> list[Revision]:
    """Return the last 64 entries of the general settings, or of a tenant's own, oldest first."""
    key = build_settings_key(tenant)
    bucket = await open_bucket(connection)
    default = (await read_newest_default(bucket)).document
    revisions = []
    before = NOTHING
    found = await read_entries(bucket, key)
    origins = await _read_origins(connection, found)
    for entry, (by, restored_at) in zip(found, origins, strict=True):
        changes: tuple[SettingChange, ...] = ()
        problem = None
        try:
            document = parse_document(entry.value)
            changes = tuple(_compare_documents(before, document))
            before = document
            resolve_settings(document) if tenant is None else resolve_settings(default, document)
        except InvalidBody as error:
            problem = str(error)
        at: Any = restored_at or entry.created  # nats-py calls it an int
        is_deletion = entry.operation is not None
        revisions.append(Revision(entry.revision or 0, at, changes, is_deletion, problem, by))
    return revisions


async def read_settings_at(connection: Client, tenant: str, moment: datetime) -> SettingsV1 | None:
    """Return the settings in force for a tenant at a former moment.

    Return None if they are no longer kept, or are not valid in this version.
    """
    bucket = await open_bucket(connection)
    documents = []
    for key in (DEFAULT_KEY, build_settings_key(tenant)):
        found: Any = await read_entries(bucket, key)
        origins = await _read_origins(connection, found)
        former = [
            entry
            for entry, (_, restored_at) in zip(found, origins, strict=True)
            if (restored_at or entry.created) <= moment
        ]
        if not former and len(found) >= SETTINGS_KEPT:
            return None
        is_set = former and former[-1].operation is None
        try:
            documents.append(parse_document(former[-1].value) if is_set else NOTHING)
        except InvalidBody:
            return None
    try:
        return resolve_settings(*documents)
    except InvalidBody:
        return None


async def _read_origins(connection: Client, entries: Sequence[KeyValue.Entry]) -> list[EntryOrigin]:
    return await asyncio.gather(*(read_origin(connection, entry.revision or 0) for entry in entries))


async def roll_back_settings(connection: Client, revision: int, tenant: str | None = None) -> int | None:
    """Set the settings of a former revision again, for all or for a tenant.

    Returns:
        The new revision; None if the former settings are in force already.

    Raises:
        NoSuchRevision: the revision cannot be restored.
        InvalidBody: the document is not valid now.
        SettingsNotProvisioned: the bucket is absent.
        SettingsContended: other writers changed the settings during every attempt.
        nats.errors.Error: it is unknown whether the settings are set.
        mnemon_contracts.subjects.InvalidId: the id cannot be a tenant's.
    """
    bucket = await open_bucket(connection)
    try:
        entry = await bucket.get(build_settings_key(tenant), revision, validate_keys=False)
    except (KeyNotFoundError, BadRequestError) as error:
        raise NoSuchRevision(
            f"revision {revision} of these settings is not stored, or is a deletion"
        ) from error
    document = parse_document(entry.value)
    return await change_settings(connection, lambda _: document, tenant)


def _compare_documents(before: Document, after: Document) -> Iterator[SettingChange]:
    old, new = flatten_document(before), flatten_document(after)
    for name in {**old, **new}:
        changed = SettingChange(name, _find_value(old, name), _find_value(new, name))
        if changed.before != changed.after:
            yield changed


def _find_value(values: dict[str, Any], name: str) -> tuple[Any, ...]:
    return (values[name],) if name in values else ()
