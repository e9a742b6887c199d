"""Erasure register: an entry for each erasure, kept apart from the log and from its backups.

A backup that is older than an erasure has the erased texts. A restore of that backup reads the register and
applies the erasure again. Entries contain ids, log positions and times, but no texts.
"""

from hashlib import sha256
from pathlib import Path
from typing import Final, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from mnemon_contracts.events.erasure import UserErasedV1
from mnemon_contracts.subjects import Owner
from mnemon_infra.config import Deployment
from mnemon_infra.storage.object_store import (
    ObjectMissing,
    ObjectStore,
    StoreUnavailable,
    open_object_store,
)

FOLDER: Final = "erasures"


class RegisterEntry(BaseModel):
    """An entry of the register, for one erasure.

    Attributes:
        event_id: id of the event of the erasure.
        position: log position of that event.
        at: time at which the log stored that event, in nanoseconds since 1970.
        event: the event, which has no content.
    """

    model_config = ConfigDict(frozen=True)

    format: int = 1
    tenant: str
    user: str
    event_id: str
    position: int
    at: int
    event: UserErasedV1

    @property
    def owner(self) -> Owner:
        return self.tenant, self.user


class ErasureRegister:
    """Erasure register in an object store, with one entry for each erasure."""

    def __init__(self, store: ObjectStore) -> None:
        self.location = store.location
        self._store = store

    @classmethod
    def open(cls, location: str | Path) -> Self:
        """Open the register in a folder or a bucket.

        Raises:
            StoreUnavailable: the location cannot be used.
            ModuleNotFoundError: the package `obstore`, which buckets need, is not installed.
        """
        return cls(open_object_store(location))

    @classmethod
    def open_configured(cls, deployment: Deployment) -> Self | None:
        """Open the register of a deployment; None if none is configured.

        Raises:
            StoreUnavailable: the location cannot be used.
            ModuleNotFoundError: the package `obstore`, which buckets need, is not installed.
        """
        return cls.open(deployment.erasure_register) if deployment.erasure_register else None

    async def has(self, owner: Owner, event_id: str) -> bool:
        """Return whether the register has the entry of an erasure.

        Raises:
            StoreUnavailable: the register cannot be read.
        """
        try:
            await self._store.read(_name_entry(owner, event_id))
        except ObjectMissing:
            return False
        return True

    async def add(self, entry: RegisterEntry) -> None:
        """Add an entry, unless the register has it.

        Raises:
            StoreUnavailable: the register cannot be read or written.
        """
        if not await self.has(entry.owner, entry.event_id):
            body = entry.model_dump_json(exclude_none=True).encode()
            await self._store.write(_name_entry(entry.owner, entry.event_id), body)

    async def list_entries(self) -> list[RegisterEntry]:
        """Return all entries, oldest first.

        Raises:
            StoreUnavailable: the register cannot be read, or an entry is damaged.
        """
        entries = []
        for name in await self._store.list_names(FOLDER):
            if not name.endswith(".json"):
                continue
            try:
                entries.append(RegisterEntry.model_validate_json(await self._store.read(name)))
            except ValidationError as error:
                raise StoreUnavailable(
                    f"{name} in {self.location} is damaged, so the erasure that the file records is unknown: "
                    "restore the file from another copy of the register"
                ) from error
        return sorted(entries, key=lambda each: (each.at, each.position))


def _name_entry(owner: Owner, event_id: str) -> str:
    """Return the file name of an entry: a hash, so that the name shows no id of a user."""
    return f"{FOLDER}/{sha256(chr(0).join((*owner, event_id)).encode()).hexdigest()}.json"
