"""Manifest of a backup: its segments with positions and checksums. No I/O."""

from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

FORMAT: Final = 1
"""Version of the format of backups that this mnemon writes and reads."""

MANIFEST_NAME: Final = "manifest.json"
SEGMENT_FOLDER: Final = "segments"
DEPLOYMENT_FOLDER: Final = "deployment"

SEGMENT_EVENTS: Final = 100_000
"""Maximum number of events of a segment."""

SEGMENT_BYTES: Final = 32 * 1024 * 1024
"""Number of bytes of encoded events, before compression, from which a segment is full."""


class BackupUnusable(Exception):
    """A backup cannot be read or written; the message names the file or the backup, and the next step."""


class StoredFile(BaseModel):
    """A file of the backup, as it is stored; `size` is in bytes."""

    model_config = ConfigDict(frozen=True)

    name: str
    size: int
    sha256: str


class SegmentEntry(BaseModel):
    """A segment: the events of a range of the log.

    Attributes:
        first: position of the first event.
        last: position of the last event.
        last_stored_at: time at which the log stored the last event, in nanoseconds since 1970.
        is_full: whether no later event belongs in this segment.
    """

    model_config = ConfigDict(frozen=True)

    first: int
    last: int
    last_stored_at: int
    events: int
    is_full: bool
    file: StoredFile


class Manifest(BaseModel):
    """List of the files of a backup, with positions and checksums, without ids of users and without texts.

    Attributes:
        format: version of the format of the backup.
        mnemon: version of mnemon that wrote the backup.
        backup_id: id that all runs of the backup share.
        created_at: time of the last run, in ISO 8601.
        is_complete: whether the last run ended; if not, the backup lacks the last events of that run.
        encryption: `age`, or None for plain files.
        position: last position of the log that the backup covers.
        segments: the segments, in log order.
        deployment: file with settings, API keys, logins and erasures.
        needs_login: whether the NATS server required a login.
    """

    model_config = ConfigDict(frozen=True)

    format: int = FORMAT
    mnemon: str
    backup_id: str
    created_at: str
    is_complete: bool
    encryption: str | None = None
    position: int
    segments: tuple[SegmentEntry, ...] = ()
    deployment: StoredFile | None = None
    needs_login: bool = False

    @property
    def events(self) -> int:
        """Number of events in all segments."""
        return sum(each.events for each in self.segments)

    @property
    def last_stored_at(self) -> int:
        """Time of the last event, in nanoseconds since 1970; 0 if the backup has no events."""
        return self.segments[-1].last_stored_at if self.segments else 0

    @property
    def files(self) -> list[StoredFile]:
        """All files of the backup without the manifest: the record of the deployment, then the segments."""
        record = [self.deployment] if self.deployment else []
        return [*record, *(each.file for each in self.segments)]

    @property
    def file_names(self) -> set[str]:
        """Names of all files of the backup, without the manifest."""
        return {each.name for each in self.files}

    def encode(self) -> bytes:
        """Return the manifest as JSON."""
        return self.model_dump_json(indent=1).encode() + b"\n"

    @classmethod
    def parse(cls, body: bytes, location: str) -> "Manifest":
        """Parse a manifest; `location` names the backup in errors.

        Raises:
            BackupUnusable: the manifest is damaged, or has a newer format.
        """
        try:
            manifest = cls.model_validate_json(body)
        except ValidationError as error:
            raise BackupUnusable(
                f"{MANIFEST_NAME} in {location} is damaged: use another copy of the backup, or begin a "
                "new backup at another destination"
            ) from error
        if manifest.format > FORMAT:
            raise BackupUnusable(
                f"the backup in {location} was written by mnemon {manifest.mnemon} in format "
                f"{manifest.format}, and this version reads format {FORMAT}: upgrade mnemon"
            )
        return manifest


def select_kept_segments(segments: Sequence[SegmentEntry]) -> tuple[list[SegmentEntry], int]:
    """Return the segments that a further run keeps, and the position after which it reads the log.

    A last segment that is not full is written again with the new events, so that many small runs do not
    leave many small segments.
    """
    kept = list(segments)
    if kept and not kept[-1].is_full:
        kept.pop()
    return kept, kept[-1].last if kept else 0
