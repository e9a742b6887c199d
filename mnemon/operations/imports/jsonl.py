"""Reader of mnemon's own exports (`mnemon.operations.memory_lines`)."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, BinaryIO, Final

from mnemon.operations.imports.records import (
    ImportRecord,
    IncomingEvent,
    NotReadable,
    RefusedRecord,
    create_import_id,
)
from mnemon.operations.memory_lines import EVENTS, VERSION
from mnemon_contracts.base import BODY_LIMIT, Event, InvalidBody
from mnemon_contracts.decode import UnknownEvent, decode_event
from mnemon_contracts.events.chat import StartedV1
from mnemon_contracts.identity import derive_first_conversation, derive_started_conversation
from mnemon_contracts.registry import EVENTS as REGISTRY
from mnemon_contracts.subjects import Address, InvalidId, encode_token

_MAX_LINE: Final = 2 * BODY_LIMIT
"""Maximum length of a line in bytes: a longer line cannot be an event."""


class _InvalidLine(ValueError):
    def __init__(self, name: str, reason: str) -> None:
        super().__init__(reason)
        self.name = name
        self.reason = reason


@dataclass(slots=True)
class JsonLinesReader:
    """Reader of a file of `mnemon export jsonl`.

    Attributes:
        tenant: the tenant that gets all events, if the export has only one tenant; None means the tenants of
            the lines.
        user: the user that gets all events, if the export has only one user; None means the users of the
            lines.
    """

    tenant: str | None = None
    user: str | None = None
    _source: tuple[str, str] | None = None
    _conversations: dict[str, str] = field(default_factory=dict)
    _without_id: Counter[str] = field(default_factory=Counter)

    def read(self, file: BinaryIO) -> Iterator[ImportRecord]:
        """Yield the event or the refusal of each line of an export, in its order.

        Raises:
            NotReadable: a header line is not that of an export or has a newer version, or the lines
                have several users although `user` is given, or several tenants although `tenant` is.
        """
        number = 0
        while line := file.readline(_MAX_LINE):
            number += 1
            place = f"line {number}"
            if not line.endswith(b"\n") and len(line) == _MAX_LINE:
                while not line.endswith(b"\n") and (line := file.readline(_MAX_LINE)):
                    pass
                yield RefusedRecord(place, "line", f"has more than {_MAX_LINE:,} bytes")
                continue
            if not line.strip():
                continue
            try:
                record = _parse_object(line)
                if "mnemon" in record:
                    _check_header(record)
                    continue
                yield self._read_event(place, record)
            except _InvalidLine as error:
                yield RefusedRecord(place, error.name, error.reason, _decode_line(line))
            except RecursionError:
                yield RefusedRecord(place, "line", "has JSON that is nested too deeply", _decode_line(line))

    def _read_event(self, place: str, record: dict[str, Any]) -> IncomingEvent:
        name, version = _parse_event_name(record.get("event"))
        source = _get_id(record, "tenant", self.tenant), _get_id(record, "user", self.user)
        self._require_one_source(place, *source)
        owner = self.tenant or source[0], self.user or source[1]
        conversation = record.get("conversation")
        if conversation is not None:
            conversation = _get_id(record, "conversation", None)
        body = record.get("body")
        if not isinstance(body, dict):
            raise _InvalidLine("body", "must be a JSON object")
        contract = REGISTRY[name]
        address = Address(contract.space, *owner, conversation, name, version)
        try:
            event = decode_event(address, _encode_body(body))
        except UnknownEvent as error:
            raise _InvalidLine("event", str(error)) from error
        except InvalidBody as error:
            raise _InvalidLine(f"body.{error.field}", error.problem) from error
        if event.id is None:
            event = event.model_copy(update={"id": self._create_id(record)})
        if owner != source:
            conversation, event = self._rename_conversations(source, owner, conversation, event)
        n = record.get("n")
        if n is not None and (not isinstance(n, int) or not 0 < n < 2**40):
            raise _InvalidLine("n", "must be a whole number from 1 to 2^40 - 1")
        return IncomingEvent(place, owner[1], event, record, conversation, owner[0], n)

    def _require_one_source(self, place: str, tenant: str, user: str) -> None:
        """Check that `user` or `tenant`, if given, does not join several users or tenants.

        Raises:
            NotReadable: the line before has another user or tenant, and `user` or `tenant` is given.
        """
        former_tenant, former_user = self._source or (tenant, user)
        self._source = tenant, user
        if self.user is not None and user != former_user:
            kind = "user"
        elif self.tenant is not None and tenant != former_tenant:
            kind = "tenant"
        else:
            return
        raise NotReadable(
            f"{place}: the lines have several {kind}s, and --{kind} needs lines of one {kind}; leave out "
            f"--{kind}"
        )

    def _create_id(self, record: dict[str, Any]) -> str:
        """Return an id that is the same each time the file is read; equal records get different ids."""
        digest = sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()
        self._without_id[digest] += 1
        return create_import_id("jsonl", digest, self._without_id[digest])

    def _rename_conversations(
        self, source: tuple[str, str], owner: tuple[str, str], conversation: str | None, event: Event
    ) -> tuple[str | None, Event]:
        """Rename conversations whose names derive from the former owner: derive them from the new owner."""
        names = self._conversations
        names.setdefault(derive_first_conversation(*source), derive_first_conversation(*owner))
        if isinstance(event, StartedV1) and conversation is None:
            names[derive_started_conversation(*source, str(event.id))] = derive_started_conversation(
                *owner, str(event.id)
            )
        changes: dict[str, Any] = {}
        if (own := getattr(event, "conversation", None)) in names:
            changes["conversation"] = names[str(own)]
        lineage = getattr(event, "lineage", None)
        if lineage is not None and lineage.conversation in names:
            changes["lineage"] = lineage.model_copy(update={"conversation": names[lineage.conversation]})
        moved = None if conversation is None else names.get(conversation, conversation)
        return moved, event.model_copy(update=changes) if changes else event


def _decode_line(line: bytes) -> str:
    return line.decode(errors="replace").rstrip("\n")


def _parse_object(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise _InvalidLine("line", f"must be JSON: {error}") from error
    if not isinstance(record, dict):
        raise _InvalidLine("line", "must be a JSON object")
    return record


def _encode_body(body: dict[str, Any]) -> bytes:
    """Encode a body for the wire. JSON can contain a lone surrogate, which UTF-8 cannot encode."""
    try:
        return _encode_json(body)
    except UnicodeEncodeError as error:
        for name, value in body.items():
            try:
                _encode_json({name: value})
            except UnicodeEncodeError:
                field = name if name.isprintable() else ascii(name)[1:-1]
                raise _InvalidLine(
                    f"body.{field}",
                    "contains a lone surrogate, which is not valid Unicode; remove the character",
                ) from error
        raise


def _encode_json(body: dict[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def _check_header(record: dict[str, Any]) -> None:
    if record["mnemon"] != "memory" or not isinstance(record.get("version"), int):
        raise NotReadable("the file is not an export of memory; give a file of `mnemon export jsonl`")
    if record["version"] > VERSION:
        raise NotReadable(
            f"the file has version {record['version']}, and this version of mnemon reads files up to version "
            f"{VERSION}: upgrade mnemon"
        )


def _parse_event_name(event: object) -> tuple[str, int]:
    name, _, version = str(event).rpartition(".v")
    if name not in EVENTS or not version.isdecimal() or int(version) < 1:
        known = ", ".join(sorted(EVENTS))
        raise _InvalidLine(
            "event",
            f"{event!r} is not the name and version of an event, such as message.v1; known events: {known}",
        )
    return name, int(version)


def _get_id(record: dict[str, Any], field: str, instead: str | None) -> str:
    given = record.get(field, instead)
    if field not in record and instead is None:
        raise _InvalidLine(field, f"is missing; name the {field} with --{field}")
    if not isinstance(given, str):
        raise _InvalidLine(field, "must be a string")
    try:
        encode_token(given)
    except InvalidId as error:
        raise _InvalidLine(field, str(error)) from error
    return given
