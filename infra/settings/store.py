"""The settings bucket: read, watched and written."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import nats.errors
import structlog
from nats.aio.client import Client
from nats.js.errors import BucketNotFoundError, KeyNotFoundError
from nats.js.kv import KeyValue

from contracts.base import InvalidBody
from contracts.settings import DEFAULT_KEY, SettingsV1
from contracts.streams import SETTINGS

log = structlog.get_logger("settings")


class SettingsNotProvisioned(Exception):
    """The bucket is absent: run `mnemon provision`."""


class LiveSettings:
    """The settings as they are now; `value` changes by itself while `watched` is open."""

    def __init__(self) -> None:
        self.value = SettingsV1()

    def of(self, tenant: str) -> SettingsV1:
        """What is in force for a tenant."""
        return self.value

    @asynccontextmanager
    async def watched(self, connection: Client) -> AsyncIterator[None]:
        """Follow the bucket. The first value is there on enter.

        Raises:
            SettingsNotProvisioned: there is no bucket to follow.
        """
        bucket = await _bucket(connection)
        self.value = await read(connection)
        watcher = await bucket.watch(DEFAULT_KEY, include_history=False)
        following = asyncio.create_task(self._follow(watcher))
        try:
            yield
        finally:
            following.cancel()
            with suppress(asyncio.CancelledError):
                await following
            with suppress(nats.errors.Error):  # the connection may have ended before
                await watcher.stop()  # type: ignore[no-untyped-call]

    async def _follow(self, watcher: KeyValue.KeyWatcher) -> None:
        async for entry in watcher:
            if entry is None:
                continue
            settings = _valid(entry)
            if settings is not None:
                self.value = settings
                log.info("settings changed", revision=entry.revision)


async def read(connection: Client) -> SettingsV1:
    """The settings in force.

    Raises:
        SettingsNotProvisioned: the bucket is absent.
    """
    bucket = await _bucket(connection)
    try:
        entry = await bucket.get(DEFAULT_KEY)
    except KeyNotFoundError:
        return SettingsV1()
    return _valid(entry) or SettingsV1()


def _valid(entry: KeyValue.Entry) -> SettingsV1 | None:
    """The settings of an entry, or None where somebody put something else there, which is said."""
    try:
        return SettingsV1.read(entry.value) if entry.value else SettingsV1()
    except InvalidBody as error:
        log.error("settings are invalid and not taken over", revision=entry.revision, error=str(error))
        return None


async def write(connection: Client, settings: SettingsV1) -> int:
    """Put new settings in force, in every process.

    Returns:
        Their revision.

    Raises:
        SettingsNotProvisioned: the bucket is absent.
    """
    bucket = await _bucket(connection)
    return await bucket.put(DEFAULT_KEY, settings.body())


async def _bucket(connection: Client) -> KeyValue:
    try:
        return await connection.jetstream().key_value(SETTINGS)
    except BucketNotFoundError as error:
        raise SettingsNotProvisioned("the bucket `settings` is absent: run `mnemon provision`") from error
