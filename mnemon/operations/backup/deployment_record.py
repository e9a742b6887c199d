"""Record of a deployment in a backup, in addition to the log: settings, API keys, logins and erasures."""

from typing import Any

import msgspec
from nats.aio.client import Client
from nats.js.errors import NotFoundError

from mnemon.operations.backup.manifest import BackupUnusable
from mnemon.operations.backup.segments import LogRecord, build_record
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.identity import identify_event
from mnemon_contracts.streams import API_KEYS, LOG, SETTINGS
from mnemon_contracts.subjects import build_event_filter, find_origin
from mnemon_infra.broker.streams.stream_reader import read_stream
from mnemon_infra.delivery import read_message_id


class LoggedErasure(msgspec.Struct, frozen=True):
    """An erasure in the log: its user, the id of its event, and its position."""

    tenant: str
    user: str
    event_id: str
    position: int


class DeploymentRecord(msgspec.Struct, frozen=True):
    """Settings, logins and API keys of a deployment, which its log lacks, and the erasures in the log.

    Attributes:
        settings: the kept entries of the bucket of settings, with residences of tenants, oldest first.
        logins: the accounts that `mnemon auth` wrote, with hashes of passwords; None if no file was given.
        erasures: the erasures of users and conversations in the log.
        api_keys: the entries of the keys for the gateway, with hashes of their secrets.
    """

    settings: list[LogRecord] = []
    logins: str | None = None
    erasures: list[LoggedErasure] = []
    api_keys: list[LogRecord] = []

    def encode(self) -> bytes:
        """Return the record as JSON."""
        return msgspec.json.encode(self)

    @classmethod
    def parse(cls, body: bytes, name: str) -> "DeploymentRecord":
        """Parse a record; `name` is the name of its file, for the error.

        Raises:
            BackupUnusable: the file is damaged.
        """
        try:
            return msgspec.json.decode(body, type=cls)
        except msgspec.DecodeError as error:
            raise BackupUnusable(f"{name} is damaged: use another copy of the backup") from error


async def read_deployment_record(connection: Client, logins: str | None, position: int) -> DeploymentRecord:
    """Read settings, API keys and erasures from the servers; return them together with `logins`.

    `logins` is the text of the file of logins; None if there is no such file. The connection needs
    permission to read all streams. The log is read up to `position`.

    Raises:
        nats.errors.Error: the server does not answer, or the log is absent.
    """
    erasures = [
        LoggedErasure(*origin.owner, find_event_id(record), record.seq)
        for record in await _read_records(connection, LOG, position, build_event_filter("user.erased"))
        if (origin := find_origin(record.subject))
    ]
    settings, api_keys = [await _read_bucket(connection, bucket) for bucket in (SETTINGS, API_KEYS)]
    return DeploymentRecord(settings, logins, erasures, api_keys)


def find_event_id(record: LogRecord) -> str:
    """Return the event id of a user's event, from its header, its body or its position."""
    origin = find_origin(record.subject)
    assert origin is not None
    try:
        body: Any = msgspec.json.decode(record.payload)
    except (msgspec.DecodeError, RecursionError):
        body = None
    own = body.get("id") if isinstance(body, dict) else None
    header = read_message_id(record.headers)
    try:
        return identify_event(*origin.owner, header, own if isinstance(own, str) else None, LOG, record.seq)
    except InvalidBody:
        return f"{LOG}:{record.seq}"


async def _read_bucket(connection: Client, bucket: str) -> list[LogRecord]:
    """Return the kept entries of a bucket, oldest first; none if the bucket is absent."""
    stream = f"KV_{bucket}"
    try:
        last = (await connection.jetstream().stream_info(stream)).state.last_seq
    except NotFoundError:
        return []
    return await _read_records(connection, stream, last)


async def _read_records(
    connection: Client, stream: str, up_to: int, subject: str | None = None
) -> list[LogRecord]:
    return [
        build_record(message)
        async for page in read_stream(connection, stream, up_to=up_to, subject=subject)
        for message, _ in page
    ]
