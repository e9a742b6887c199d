"""Files of a backup in an object store: the manifest, and the files that it lists with checksums."""

import asyncio
import fcntl
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from shlex import quote
from typing import Final

import structlog

from mnemon.operations.backup.encryption import BackupCipher
from mnemon.operations.backup.manifest import (
    DEPLOYMENT_FOLDER,
    MANIFEST_NAME,
    SEGMENT_FOLDER,
    BackupUnusable,
    Manifest,
    StoredFile,
)
from mnemon_infra.process.data_folder import FolderVersion
from mnemon_infra.storage.bucket_lock import BucketLocked
from mnemon_infra.storage.object_store import BucketStore, ObjectMissing, ObjectStore

log = structlog.get_logger("backup")

LOCK_NAME: Final = "lock"

_OWN_NAME: Final = re.compile(
    rf"({SEGMENT_FOLDER}/\d{{12,}}-\d{{12,}}-|{DEPLOYMENT_FOLDER}/)[0-9a-f]{{12}}\.json(l\.gz)?(\.age)?"
    r"(\.\d+\.draft)?"
)
"""Name of a file that `write_file` writes, or that an interrupted write leaves in a folder."""


class _WrittenElsewhere(BackupUnusable):
    def __init__(self, location: str) -> None:
        super().__init__(f"another process is writing the backup in {location}: wait until that process ends")


class BackupRepository:
    """Files of one backup, in a folder or a bucket."""

    def __init__(self, store: ObjectStore, cipher: BackupCipher) -> None:
        self.location = store.location
        self.cipher = cipher
        self._store = store

    async def read_manifest(self) -> Manifest | None:
        """Return the manifest; None if there is no backup yet.

        Raises:
            BackupUnusable: the manifest is damaged, or has a newer format.
            StoreUnavailable: the store cannot be read.
        """
        try:
            return Manifest.parse(await self._store.read(MANIFEST_NAME), self.location)
        except ObjectMissing:
            return None

    async def write_manifest(self, manifest: Manifest) -> None:
        """Replace the manifest; all files that it names must be written before.

        Raises:
            StoreUnavailable: the store cannot be written.
        """
        await self._store.write(MANIFEST_NAME, manifest.encode())

    async def write_file(self, prefix: str, suffix: str, body: bytes) -> StoredFile:
        """Encrypt and write a file; return its entry for the manifest.

        The name is the prefix, a checksum of the stored bytes, the suffix, and the suffix of encrypted files.
        So other bytes never replace a file that the manifest names.

        Raises:
            StoreUnavailable: the store cannot be written.
            ModuleNotFoundError: the cipher has a passphrase, and pyrage is not installed.
        """
        stored = await asyncio.to_thread(self.cipher.encrypt, body)
        checksum = sha256(stored).hexdigest()
        name = f"{prefix}{checksum[:12]}{suffix}{self.cipher.suffix}"
        file = StoredFile(name=name, size=len(stored), sha256=checksum)
        await self._store.write(file.name, stored)
        return file

    async def read_file(self, file: StoredFile) -> bytes:
        """Return the plain content of a file, checked against the manifest.

        Raises:
            BackupUnusable: the file is missing or damaged.
            KeyUnusable: the file cannot be decrypted.
            StoreUnavailable: the store cannot be read.
            ModuleNotFoundError: the cipher has a passphrase, and pyrage is not installed.
        """
        stored = await self._read_stored(file)
        return await asyncio.to_thread(self.cipher.decrypt, stored, f"{file.name} in {self.location}")

    async def require_same_key(self, manifest: Manifest) -> None:
        """Check that a backup has the same passphrase as the cipher, or that neither has a passphrase.

        The first intact file decides: the record of the deployment or, if that is damaged, a segment.
        Recipients are not compared. A cipher that does not encrypt needs no check.

        Raises:
            BackupUnusable: all files are missing or damaged.
            KeyUnusable: the passphrases of the file and of the cipher differ, or only one has a passphrase.
            StoreUnavailable: the store cannot be read.
            ModuleNotFoundError: the cipher has a passphrase, and pyrage is not installed.
        """
        if not self.cipher.name or not manifest.files:
            return
        for file in manifest.files:
            try:
                stored = await self._read_stored(file)
            except BackupUnusable as error:
                log.warning(
                    "backup file found missing or damaged",
                    error=str(error),
                    next_step="after this run, check all files: mnemon restore "
                    f"{quote(self.location)} --check, with --identity or --passphrase-file",
                )
                continue
            await asyncio.to_thread(self.cipher.require_same_key, stored, self.location)
            return
        raise BackupUnusable(
            f"all files of the backup in {self.location} are missing or damaged: name another destination, "
            "or bring the files back from another copy of the backup"
        )

    async def _read_stored(self, file: StoredFile) -> bytes:
        where = f"{file.name} in {self.location}"
        try:
            stored = await self._store.read(file.name)
        except ObjectMissing as error:
            raise BackupUnusable(f"{where} is missing: use another copy of the backup") from error
        if sha256(stored).hexdigest() != file.sha256:
            raise BackupUnusable(
                f"{where} is damaged: its checksum differs from the manifest. Use another copy of the backup"
            )
        return stored

    async def remove_unlisted_files(self, manifest: Manifest) -> int:
        """Remove segments and deployment records that the manifest does not name.

        Among them are former versions of segments, with events that have been erased since. Files that no
        backup has written stay: the folder of a backup may have others.

        Returns:
            The number of removed files.

        Raises:
            StoreUnavailable: the store cannot be read or written.
        """
        names = [
            name
            for folder in (SEGMENT_FOLDER, DEPLOYMENT_FOLDER)
            for name in await self._store.list_names(folder)
        ]
        others = [name for name in names if name not in manifest.file_names and _OWN_NAME.fullmatch(name)]
        for name in others:
            await self._store.delete(name)
        return len(others)

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[None]:
        """Keep other backups from writing to the destination during the block; create a folder if absent.

        Raises:
            BackupUnusable: another process writes this backup, the folder cannot be written, or it is the
                data folder of a stack, whose lock has the same name.
            StoreUnavailable: the bucket cannot be read or written.
        """
        if not isinstance(self._store, BucketStore):
            with _lock_folder(Path(self.location)):
                yield
            return
        try:
            async with self._store.lock(LOCK_NAME):
                yield
        except BucketLocked:
            raise _WrittenElsewhere(self.location) from None


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder, which is created if absent, for the duration of the block.

    Raises:
        BackupUnusable: another process holds the lock, the folder cannot be written, or it is the data folder
            of a stack.
    """
    with suppress(OSError):  # the next line names the fault
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        lock = (folder / LOCK_NAME).open("a")
    except OSError as error:
        raise BackupUnusable(
            f"{folder} cannot be written: {error.strerror}. Make it writable, or name another folder"
        ) from error
    with lock:
        if FolderVersion.read(folder):
            raise BackupUnusable(
                f"{folder} is the data folder of a stack: name another folder for the backup"
            )
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _WrittenElsewhere(str(folder)) from None
        yield
