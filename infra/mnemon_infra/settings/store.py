"""Settings as processes use them: live values, one-off reads, and changes."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import NamedTuple

import nats.errors
import structlog
from nats.aio.client import Client
from nats.js.errors import KeyWrongLastSequenceError, NotFoundError
from nats.js.kv import KeyValue

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.settings.document import (
    NOTHING,
    Document,
    build_document,
    encode_document,
    parse_document,
    resolve_settings,
)
from mnemon_contracts.settings.groups import (
    DEFAULT_KEY,
    SettingsV1,
    build_settings_key,
    parse_settings_tenant,
)
from mnemon_contracts.streams import SETTINGS
from mnemon_contracts.subjects import InvalidSubject
from mnemon_infra.broker.connection import watch_reconnects
from mnemon_infra.broker.key_value import read_present_entries, stop_watch
from mnemon_infra.process.cancellation import run_task
from mnemon_infra.settings.bucket import (
    log_invalid_settings,
    open_bucket,
    parse_default,
    put_entry,
    read_newest_default,
    read_newest_of_tenant,
)
from mnemon_infra.settings.residence import (
    Residence,
    apply_residence,
    list_residences,
    log_invalid_residence,
)

log = structlog.get_logger("settings")

PAUSE = 0.2
"""Seconds before the bucket is read again after a failed attempt."""

CHECK_INTERVAL = 5.0
"""Seconds between two checks that the bucket exists and that the watch on it is alive."""

ATTEMPTS = 50
"""Maximum number of attempts at a change, because other writers may change the same settings first."""

BACK_OFF = 0.002
"""Seconds by which the wait grows with each attempt, because the replica that answers may be behind."""


class SettingsContended(Exception):
    """Other writers changed the same settings during every attempt at a change."""


class LiveSettings:
    """The current settings: `value` has the general ones, and `get_settings` returns those of a tenant.

    Both follow the bucket while `watch_bucket` is open. An invalid entry of the general settings is ignored.
    A tenant whose entry is invalid, or contradicts the general settings, has the general settings.
    """

    def __init__(self) -> None:
        self.value = SettingsV1()
        self._default = NOTHING
        self._bodies: dict[str, bytes] = {}
        self._of: dict[str, SettingsV1] = {}
        self._residences: dict[str, Residence] = {}
        self._stopped: dict[str, tuple[SettingsV1, SettingsV1]] = {}
        """Settings without extraction and compaction, each with the settings that they come from."""

    def get_settings(self, tenant: str) -> SettingsV1:
        """Return the settings in force for a tenant.

        While a move stops requests to language models in this deployment, extraction and compaction are off.
        """
        settings = self._of.get(tenant, self.value)
        residence = self._residences.get(tenant)
        return (
            settings
            if residence is None or not residence.stops_models
            else self._disable_models(tenant, settings)
        )

    def get_residence(self, tenant: str) -> Residence | None:
        """Return the residence of a tenant; None if there is no entry, as before its first move."""
        return self._residences.get(tenant)

    def is_suspended(self, tenant: str) -> bool:
        """Return whether a move suspends a tenant: nothing is then decided, extracted or summarised for it.

        `persist` and `index` still handle its events.
        """
        residence = self._residences.get(tenant)
        return residence is not None and residence.is_suspended

    def has_moved(self, tenant: str) -> bool:
        """Return whether a tenant has moved to another deployment."""
        residence = self._residences.get(tenant)
        return residence is not None and residence.state == "moved"

    def _disable_models(self, tenant: str, settings: SettingsV1) -> SettingsV1:
        known = self._stopped.get(tenant)
        if known is None or known[0] is not settings:
            off = settings.model_copy(
                update={
                    "extraction": settings.extraction.model_copy(update={"enabled": False}),
                    "compaction": settings.compaction.model_copy(update={"enabled": False}),
                }
            )
            known = self._stopped[tenant] = settings, off
        return known[1]

    def list_settings(self) -> Iterable[SettingsV1]:
        """Return the general settings, and those of each tenant that has its own. No move changes them."""
        return [self.value, *self._of.values()]

    def list_tenants(self) -> Iterable[str]:
        """Return the tenants that have valid settings of their own."""
        return list(self._of)

    @asynccontextmanager
    async def watch_bucket(self, connection: Client) -> AsyncIterator[None]:
        """Follow the bucket until the end of the block. When the block begins, the settings are loaded.

        Raises:
            SettingsNotProvisioned: the bucket is absent.
            nats.errors.Error: the server does not answer while the settings are loaded.
        """
        bucket = await open_bucket(connection)
        with watch_reconnects(connection) as reconnected:
            watch = await self._load_entries(connection, bucket)
            async with run_task(self._follow_bucket(connection, bucket, watch, reconnected)):
                yield

    async def _follow_bucket(
        self, connection: Client, bucket: KeyValue, watch: "_Watch", reconnected: asyncio.Event
    ) -> None:
        """Apply entries as they come. After a reconnect, or a loss of the bucket, start a new watch.

        A restarted server no longer has the watch, and nats-py notices that up to 20 s later. nats-py never
        notices that a bucket was deleted and created again.
        """
        while True:
            taking = asyncio.create_task(self._apply_entries(watch.watcher))
            ends = [
                asyncio.create_task(reconnected.wait()),
                asyncio.create_task(_wait_for_loss(connection, watch)),
            ]
            try:
                await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (taking, *ends):
                    task.cancel()
                await stop_watch(watch.watcher)
            reconnected.clear()
            watch = await self._load_patiently(connection, bucket)

    async def _apply_entries(self, watcher: KeyValue.KeyWatcher) -> None:
        async for entry in watcher:
            if entry is not None:
                self._apply_and_log(entry)

    async def _load_patiently(self, connection: Client, bucket: KeyValue) -> "_Watch":
        said: str | None = None
        while True:
            try:
                return await self._load_entries(connection, bucket)
            except nats.errors.Error as error:
                problem = repr(error)
                if isinstance(error, NotFoundError):
                    problem = (
                        f"the bucket `{SETTINGS}` was deleted: run `mnemon provision`, then set values again"
                    )
                if problem != said:
                    log.error("settings read failed, former settings stay", error=problem)
                said = problem
                await asyncio.sleep(PAUSE)

    async def _load_entries(self, connection: Client, bucket: KeyValue) -> "_Watch":
        """Load all entries of the bucket, and return a watch that yields later ones."""
        created = (await connection.jetstream().stream_info(f"KV_{SETTINGS}")).created
        watcher = await bucket.watchall()
        try:
            entries = await read_present_entries(watcher)
            default = (await read_newest_default(bucket)).document
            residences: dict[str, Residence] = {}
            try:
                for entry in entries:
                    apply_residence(residences, entry.key, entry.value)
            except ValueError:
                residences = await list_residences(connection)
        except BaseException:
            await stop_watch(watcher)
            raise
        self._bodies = {
            tenant: entry.value or b"" for entry in entries if (tenant := _parse_tenant(entry)) is not None
        }
        self._of = {}
        self._residences = residences
        self._apply_general_settings(default)
        return _Watch(watcher, created)

    def _apply_and_log(self, entry: KeyValue.Entry) -> None:
        if self._apply_entry(entry):
            log.info("settings changed", key=entry.key, revision=entry.revision)

    def _apply_entry(self, entry: KeyValue.Entry) -> bool:
        """Apply an entry; return False if it is invalid, or neither settings nor a residence."""
        if entry.key == DEFAULT_KEY:
            try:
                default = parse_default(entry.value)
            except InvalidBody as error:
                log_invalid_settings(entry.key, entry.revision, error)
                return False
            self._apply_general_settings(default)
            return True
        if (tenant := _parse_tenant(entry)) is not None:
            self._bodies[tenant] = entry.value or b""
            return self._apply_tenant_settings(tenant)
        try:
            return apply_residence(self._residences, entry.key, entry.value)
        except ValueError as error:
            log_invalid_residence(entry.key, error)
            return False

    def _apply_general_settings(self, default: Document) -> None:
        self._default, self.value = default, resolve_settings(default)
        for tenant in self._bodies:
            self._apply_tenant_settings(tenant)

    def _apply_tenant_settings(self, tenant: str) -> bool:
        """Put a tenant's own settings in force; return False if they are invalid."""
        self._of.pop(tenant, None)
        try:
            own = parse_document(self._bodies[tenant])
            if own:
                self._of[tenant] = resolve_settings(self._default, own)
        except InvalidBody as error:
            log.error(
                "tenant settings ignored as invalid, using the general settings",
                tenant=tenant,
                error=str(error),
            )
            return False
        return True


class _Watch(NamedTuple):
    """A watch, and the time at which its bucket was created."""

    watcher: KeyValue.KeyWatcher
    created: datetime | None


async def _wait_for_loss(connection: Client, watch: _Watch) -> None:
    """Return once the watched bucket is replaced or deleted, or the server no longer has the watch."""
    assert watch.watcher._sub is not None
    while True:
        await asyncio.sleep(CHECK_INTERVAL)
        try:
            info = await connection.jetstream().stream_info(f"KV_{SETTINGS}")
            if info.created != watch.created:
                log.warning(
                    "settings bucket recreated, reading it again",
                    bucket=SETTINGS,
                    created_at=str(info.created),
                )
                return
            await watch.watcher._sub.consumer_info()
        except NotFoundError:
            return
        except nats.errors.Error as error:  # a reconnect starts a new watch
            log.warning("settings bucket check failed, retrying", error=repr(error))


def _parse_tenant(entry: KeyValue.Entry) -> str | None:
    try:
        return parse_settings_tenant(entry.key)
    except InvalidSubject as error:
        log_invalid_settings(entry.key, entry.revision, error)
        return None


async def read_settings(connection: Client, tenant: str | None = None) -> SettingsV1:
    """Return the settings in force, in general or for a tenant.

    A tenant whose own settings are invalid has the general settings. A move of the tenant, which may stop
    requests to language models, does not change the result.

    Raises:
        SettingsNotProvisioned: the bucket is absent.
        nats.errors.Error: the server does not answer.
        mnemon_contracts.subjects.InvalidId: the id cannot be a tenant's.
    """
    default, own = await read_documents(connection, tenant)
    try:
        return resolve_settings(default, own)
    except InvalidBody:
        return resolve_settings(default)


async def read_documents(connection: Client, tenant: str | None = None) -> tuple[Document, Document]:
    """Return the general settings, and a tenant's own; the two together need not be valid."""
    key = build_settings_key(tenant)
    bucket = await open_bucket(connection)
    default = await read_newest_default(bucket)
    own = NOTHING if tenant is None else (await read_newest_of_tenant(bucket, key)).document
    return default.document, own


async def change_settings(
    connection: Client, edit: Callable[[Document], Document], tenant: str | None = None
) -> int | None:
    """Change settings in every process. A concurrent change by another writer is kept.

    `edit` makes the new document of a tenant, or of the general settings, from the current one. If another
    writer has changed the settings, `edit` is called again.

    Returns:
        The new revision; None if `edit` changed nothing.

    Raises:
        InvalidBody: the new document is not valid; nothing is changed.
        SettingsNotProvisioned: the bucket is absent.
        SettingsContended: other writers changed the settings during every attempt.
        nats.errors.Error: it is unknown whether the settings are changed.
        mnemon_contracts.subjects.InvalidId: the id cannot be a tenant's.
    """
    key = build_settings_key(tenant)
    bucket = await open_bucket(connection)
    for attempt in range(ATTEMPTS):
        default = await read_newest_default(bucket)
        present = default if tenant is None else await read_newest_of_tenant(bucket, key)
        document = edit(present.document)
        if tenant is None:
            resolve_settings(document)
        else:
            resolve_settings(default.document, document)
        body = encode_document(document)
        if body == (present.body or encode_document(NOTHING)):
            return None
        try:
            return await put_entry(connection, key, body, present.revision)
        except KeyWrongLastSequenceError:
            await asyncio.sleep(attempt * BACK_OFF)
    raise SettingsContended(
        "the settings were not changed, because other writers keep changing the same settings: try again"
    )


async def write_settings(connection: Client, settings: SettingsV1) -> int | None:
    """Replace all general settings. The function raises the same errors as `change_settings`.

    Returns:
        The new revision; None if these settings were in force already.
    """
    return await change_settings(connection, lambda _: build_document(settings))
