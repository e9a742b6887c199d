"""API keys for the HTTP gateway: creation, storage in a bucket, and checks.

A key is `mnemon_<id>_<secret>`. The bucket has an entry for each id, with the SHA-256 of the secret. A slow
hash would add no protection, because the secret has 256 random bits.
"""

import asyncio
import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple

import structlog
from cachetools import LRUCache, TTLCache
from nats.aio.client import Client
from nats.js.errors import BucketNotFoundError, InvalidKeyError, KeyNotFoundError
from nats.js.kv import KeyValue
from pydantic import Field, ValidationError

from mnemon_contracts.base import Contract, Identifier, Moment, Text
from mnemon_contracts.streams import API_KEYS
from mnemon_infra.broker.key_value import TIMEOUT, read_present_entries, stop_watch
from mnemon_infra.process.cancellation import suppress_task_error

log = structlog.get_logger("api_keys")

Scope = Literal["read", "write", "erase"]
"""Permission of a key: to read memory, to publish and change memory, or to erase users and conversations."""

ALL_SCOPES: Final[tuple[Scope, ...]] = ("read", "write", "erase")

CACHE_SECONDS: Final = 5.0
"""Seconds for which a process keeps a key that it has found, even if another process revokes the key."""

ABSENT_SECONDS: Final = 1.0
"""Seconds for which a process remembers that an id has no key.

A new key whose id was tried before works after at most this time.
"""

MAX_LOOKUPS: Final = 64
"""Maximum number of ids that a process looks up at once, besides ids of keys that it has found before."""

CACHED_KEYS: Final = 10_000
_KEY: Final = re.compile(r"mnemon_([0-9a-f]{12})_([A-Za-z0-9_-]{43})\Z")


class ApiKey(Contract):
    """A key as it is stored, without its secret."""

    id: Identifier = Field(description="Id of the key: its part that is not secret.")
    tenant: Identifier = Field(description="Tenant of the key.")
    scopes: tuple[Scope, ...] = Field(
        description="Permissions of the key: any of `read`, `write` and `erase`."
    )
    user: Identifier | None = Field(
        default=None,
        description="User whose memory the key can use. Default: all users of the tenant.",
    )
    name: Text | None = Field(
        default=None, description="Label of the key, such as the name of the program that uses the key."
    )
    created_at: Moment = Field(description="Time at which the key was created.")
    digest: Text = Field(description="SHA-256 of the secret, in hexadecimal.")


class IssuedKey(NamedTuple):
    """A new key: the text that a client sends, shown once, and the part that is stored."""

    text: str
    stored: ApiKey


class ApiKeysNotProvisioned(Exception):
    """The bucket of keys is absent; the next step is `mnemon provision`."""


def issue_key(
    tenant: str, scopes: Sequence[str] = ALL_SCOPES, user: str | None = None, name: str | None = None
) -> IssuedKey:
    """Create a key, which `ApiKeys.add` stores. Without `user`, the key is for all users of the tenant.

    Raises:
        mnemon_contracts.base.InvalidBody: the tenant, a scope, the user or the name is invalid.
    """
    key_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    stored = ApiKey.create_strict(
        id=key_id,
        tenant=tenant,
        scopes=tuple(scopes),
        user=user,
        name=name,
        created_at=datetime.now(UTC),
        digest=_hash_secret(secret),
    )
    return IssuedKey(f"mnemon_{key_id}_{secret}", stored)


class TooManyLookups(Exception):
    """The process is looking up `MAX_LOOKUPS` unknown keys already; the client has to try again later."""


class ApiKeys:
    """The API keys of a deployment.

    Wrong keys cost the server little: concurrent requests with the same id share one lookup, absent ids are
    cached for a second, and lookups are limited, except those of ids that this process has found before.
    """

    def __init__(self, bucket: KeyValue) -> None:
        self._bucket = bucket
        self._present: TTLCache[str, ApiKey] = TTLCache(CACHED_KEYS, CACHE_SECONDS)
        self._absent: TTLCache[str, bool] = TTLCache(CACHED_KEYS, ABSENT_SECONDS)
        self._known: LRUCache[str, bool] = LRUCache(CACHED_KEYS)
        """Ids whose last lookup found a key. They stay when `_present` drops the key after `CACHE_SECONDS`:
        many wrong keys at once, which use up `MAX_LOOKUPS`, then do not keep out the keys in use.
        """
        self._lookups: dict[str, asyncio.Task[ApiKey | None]] = {}
        self._unknown_lookups = 0

    async def add(self, key: ApiKey) -> None:
        """Store a new key, so that the gateway accepts it."""
        await self._bucket.create(key.id, key.encode_body())
        self._absent.pop(key.id, None)

    async def revoke(self, key_id: str) -> bool:
        """Remove a key. Return False if there is no such key."""
        try:
            await self._bucket.get(key_id)
        except (KeyNotFoundError, InvalidKeyError):
            return False
        await self._bucket.purge(key_id)
        self._present.pop(key_id, None)
        return True

    async def list_keys(self) -> list[ApiKey]:
        """Return all readable keys, oldest first."""
        watcher = await self._bucket.watchall()
        try:
            entries = await read_present_entries(watcher)
        finally:
            await stop_watch(watcher)
        found = [key for each in entries if each.operation is None and (key := _parse_key(each))]
        return sorted(found, key=lambda key: (key.created_at, key.id))

    async def find(self, text: str) -> ApiKey | None:
        """Return the stored part of the key that a client sent; None if the key is wrong or revoked.

        Raises:
            TooManyLookups: the key is unknown, and the process is looking up `MAX_LOOKUPS` others.
            nats.errors.Error: the server does not answer.
        """
        written = _KEY.match(text)
        if written is None:
            return None
        key_id, secret = written.groups()
        key = await self._get_key(key_id)
        return key if key and hmac.compare_digest(key.digest, _hash_secret(secret)) else None

    async def _get_key(self, key_id: str) -> ApiKey | None:
        if (present := self._present.get(key_id)) or key_id in self._absent:
            return present
        lookup = self._lookups.get(key_id)
        if lookup is None:
            is_known = key_id in self._known
            if not is_known and self._unknown_lookups >= MAX_LOOKUPS:
                raise TooManyLookups
            self._unknown_lookups += not is_known
            lookup = self._lookups[key_id] = asyncio.create_task(self._look_up(key_id))
            lookup.add_done_callback(suppress_task_error)
            lookup.add_done_callback(lambda _: self._end_lookup(key_id, is_known=is_known))
        return await asyncio.shield(lookup)  # other requests may wait for it, too

    def _end_lookup(self, key_id: str, *, is_known: bool) -> None:
        del self._lookups[key_id]
        self._unknown_lookups -= not is_known

    async def _look_up(self, key_id: str) -> ApiKey | None:
        try:
            key = _parse_key(await self._bucket.get(key_id))
        except KeyNotFoundError:
            key = None
        if key is None:
            self._known.pop(key_id, None)
            self._absent[key_id] = True
        else:
            self._known[key_id] = True
            self._present[key_id] = key
        return key


async def open_api_keys(connection: Client) -> ApiKeys:
    """Open the bucket of keys.

    Raises:
        ApiKeysNotProvisioned: the bucket is absent.
        nats.errors.Error: the server does not answer.
    """
    try:
        return ApiKeys(await connection.jetstream(timeout=TIMEOUT).key_value(API_KEYS))
    except BucketNotFoundError as error:
        raise ApiKeysNotProvisioned(
            f"the bucket `{API_KEYS}` does not exist: run `mnemon provision`"
        ) from error


def _parse_key(entry: KeyValue.Entry) -> ApiKey | None:
    try:
        return ApiKey.model_validate_json(entry.value or b"")
    except ValidationError:
        log.warning(
            "unreadable API key ignored", key=entry.key, next_step=f"mnemon auth key revoke {entry.key}"
        )
        return None


def _hash_secret(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()
