"""Import of the records of a reader: in batches, each event once, however often the import is repeated."""

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Final, NamedTuple

from nats.aio.client import Client
from nats.js.errors import NotFoundError

from mnemon.operations.imports.existing_events import ExistingEvents, is_tenant_empty, read_existing_events
from mnemon.operations.imports.reassignment import erase_reassigned_chat
from mnemon.operations.imports.records import (
    ImportDoubt,
    ImportRecord,
    IncomingEvent,
    LeftOutRecord,
    Reassignment,
    RefusedRecord,
)
from mnemon.operations.imports.report import ImportReport
from mnemon.operations.memory_lines import MessagePositions, has_positions, map_positions
from mnemon_consumers.domain.policy.refusal import find_refusal
from mnemon_contracts.base import Event, InvalidBody
from mnemon_contracts.events.chat import ClearedV1, MessageV1, StartedV1
from mnemon_contracts.events.memory import FactProposedV1, FactSavedV1
from mnemon_contracts.identity import scope_event_id
from mnemon_contracts.registry import EVENTS
from mnemon_contracts.settings.groups import Policy
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import InvalidId, Owner, build_memory_subject
from mnemon_infra.broker.streams.log_writer import LogEvent, append_events, retry_store
from mnemon_infra.settings.store import read_settings
from mnemon_producers.events import ChatEvent, check_id, encode_event

_NAMES = {contract.latest: contract.name for contract in EVENTS.values()}


def get_event_name(event: Event) -> str:
    """Return the name of an event, such as `fact.saved`."""
    return _NAMES[type(event)]


def encode_import(tenant: str, incoming: IncomingEvent) -> LogEvent | RefusedRecord:
    """Return the event for the log, or the refusal if an id is invalid or the body is too large."""
    event, event_id = incoming.event, str(incoming.event.id)
    try:
        if isinstance(event, MessageV1 | StartedV1 | ClearedV1):
            sent = encode_event(tenant, ChatEvent(incoming.user, event, incoming.conversation), event_id)
            return LogEvent(sent.subject, sent.body, sent.message_id)
        check_id("tenant", tenant)
        check_id("user", incoming.user)
        subject = build_memory_subject(
            tenant, incoming.user, get_event_name(event), len(EVENTS[get_event_name(event)].versions)
        )
        return LogEvent(subject, event.encode_body(), scope_event_id(tenant, incoming.user, event_id))
    except InvalidBody as error:
        return RefusedRecord(incoming.place, error.field, error.problem, incoming.source)
    except InvalidId as error:
        field, _, problem = str(error).partition(": ")
        return RefusedRecord(incoming.place, field, problem, incoming.source)


BATCH: Final = 1000
"""Maximum number of events in one write to the log: the log takes no more at once."""

BATCH_BYTES: Final = 4 * 1024 * 1024
"""Maximum size of one write to the log, in bytes."""

PAUSE: Final = 1.0
"""Seconds before a batch is sent again if the log did not acknowledge it."""

_NOT_PUBLISHED: Final = 0

ImportProgress = Callable[[ImportReport], None]


async def count_records(
    records: AsyncIterator[ImportRecord], tenant: str | None, report: ImportReport, progress: ImportProgress
) -> None:
    """Count the records without importing them.

    The counts of an import may differ: it compares the events with the log, and judges proposals by the
    policy of the tenant instead of the default policy.

    `tenant` is the tenant of events that name none. `progress` is called after every `BATCH` records. The
    errors of the reader, such as `NotReadable`, propagate.
    """
    number = 0
    async for each in records:
        number += 1
        if number % BATCH == 0:
            progress(report)
        match each:
            case IncomingEvent():
                wire = encode_import(str(each.tenant or tenant), each)
                if isinstance(wire, RefusedRecord):
                    report.count_refused(wire)
                    continue
                report.judged_by_default_policy += isinstance(each.instead or each.event, FactProposedV1)
                if (refusing := judge_proposal(each, Policy())) is not None:
                    report.count_refused(refusing)
                else:
                    report.count_event(each, get_event_name(each.event))
            case RefusedRecord():
                report.count_refused(each)
            case LeftOutRecord():
                report.count_left_out(each)
            case ImportDoubt():
                report.count_doubt(each)
            case Reassignment():
                pass  # an import would erase the chat if it has other speakers in the log


def judge_proposal(incoming: IncomingEvent, policy: Policy) -> RefusedRecord | None:
    """Return the refusal of a proposal, or of the fact in its place, that the policy rejects; else None."""
    proposal = incoming.instead or incoming.event
    if not isinstance(proposal, FactProposedV1):
        return None
    refused = find_refusal(proposal.text, policy)
    return RefusedRecord(incoming.place, "text", refused[1], incoming.source) if refused else None


class _StagedEvent(NamedTuple):
    """An event of the current batch, encoded for the log, with the existing events of its user."""

    owner: Owner
    known: ExistingEvents
    incoming: IncomingEvent
    wire: LogEvent


class RecordImporter:
    """Importer of records, which writes their events to the log in batches.

    In a batch, chat events go first: other events name the log positions of messages.

    `tenant` is the tenant of events that name none. `progress` is called after each batch.
    """

    def __init__(
        self, connection: Client, tenant: str | None, report: ImportReport, progress: ImportProgress
    ) -> None:
        self._connection = connection
        self._tenant = tenant
        self._report = report
        self._progress = progress
        self._empty_tenants: dict[str, bool] = {}
        self._policies: dict[str, Policy] = {}
        self._users: dict[Owner, ExistingEvents] = {}
        self._batch: list[_StagedEvent] = []
        self._bytes = 0

    async def import_records(self, records: AsyncIterator[ImportRecord]) -> None:
        """Import all records. The errors of the reader, such as `NotReadable`, propagate.

        Raises:
            nats.errors.Error: the server does not answer or refuses a batch; the import can be repeated.
            SettingsNotProvisioned: the bucket of settings does not exist.
            NotReassigned: a chat that was imported with other speakers cannot be erased now.
        """
        async for each in records:
            await self._take_record(each)
        await self._flush_batch()

    async def _take_record(self, record: ImportRecord) -> None:
        match record:
            case IncomingEvent():
                await self._stage_record(record)
            case RefusedRecord():
                self._report.count_refused(record)
            case LeftOutRecord():
                self._report.count_left_out(record)
            case ImportDoubt():
                self._report.count_doubt(record)
            case Reassignment():
                await self._reassign_chat(record)

    async def _reassign_chat(self, reassignment: Reassignment) -> None:
        """Erase a chat that was imported with other speakers, before its import with these speakers."""
        await self._flush_batch()
        for done in await erase_reassigned_chat(self._connection, str(self._tenant), reassignment):
            self._report.count_doubt(ImportDoubt(reassignment.place, done))
            self._users.clear()  # the log has fewer events now

    async def _stage_record(self, incoming: IncomingEvent) -> None:
        owner = str(incoming.tenant or self._tenant), incoming.user
        wire = encode_import(owner[0], incoming)
        if isinstance(wire, RefusedRecord):
            self._report.count_refused(wire)
            return
        if (refusing := judge_proposal(incoming, await self._load_policy(owner[0]))) is not None:
            self._report.count_refused(refusing)
            return
        known = await self._load_existing_events(owner)
        if incoming.instead is not None and not known.may_keep_id(incoming.event):
            incoming = incoming._replace(event=incoming.instead, instead=None)
            await self._stage_record(incoming)
            return
        event = incoming.event
        seq = known.events.get(str(event.id))
        if seq is not None:
            self._report.count_event(incoming, get_event_name(event))
            self._report.already_there += 1
            if isinstance(event, FactSavedV1):
                known.source_facts.add(event.fact_id)
            if incoming.number is not None:
                known.numbers[incoming.number] = seq
            return
        if not _is_chat(event) and (wrong := _find_conflict(known, incoming)) is not None:
            self._report.count_refused(wrong)
            return
        self._report.count_event(incoming, get_event_name(event))
        if len(self._batch) == BATCH or (self._batch and self._bytes + len(wire.body) > BATCH_BYTES):
            await self._flush_batch()
        self._batch.append(_StagedEvent(owner, known, incoming, wire))
        self._bytes += len(wire.body)
        if incoming.number is not None:
            known.numbers[incoming.number] = _NOT_PUBLISHED

    async def _load_policy(self, tenant: str) -> Policy:
        """Return the policy of a tenant. Facts that the policy rejects must not enter the log."""
        if tenant not in self._policies:
            self._policies[tenant] = (await read_settings(self._connection, tenant)).policy
        return self._policies[tenant]

    async def _load_existing_events(self, owner: Owner) -> ExistingEvents:
        """Return the existing events of a user, read once.

        When another user is read, drop the events of users who have none in the current batch: sources list
        users one after another, so the dropped events are rarely needed again.
        """
        if owner not in self._users:
            tenant, _ = owner
            if tenant not in self._empty_tenants:
                self._empty_tenants[tenant] = await is_tenant_empty(self._connection, tenant)
            waiting = {staged.owner for staged in self._batch}
            self._users = {each: known for each, known in self._users.items() if each in waiting}
            self._users[owner] = (
                ExistingEvents()
                if self._empty_tenants[tenant]
                else await read_existing_events(self._connection, owner)
            )
        return self._users[owner]

    async def _flush_batch(self) -> None:
        batch, self._batch, self._bytes = self._batch, [], 0
        await self._write_events([each for each in batch if _is_chat(each.incoming.event)])
        await self._write_events([_place_event(each) for each in batch if not _is_chat(each.incoming.event)])
        self._progress(self._report)

    async def _write_events(self, staged: list[_StagedEvent]) -> None:
        if not staged:
            return
        appended = await retry_store(
            partial(append_events, self._connection, [each.wire for each in staged]), PAUSE
        )
        for each, done in zip(staged, appended, strict=True):
            seq = done.seq
            is_twice = done.known and await self._is_in_log(seq, each.wire)  # the source has the event twice
            if done.known and not is_twice:
                seq = await self._publish_without_id(each.wire)
            self._report.already_there += is_twice
            self._report.published += not is_twice
            if each.incoming.number is not None:
                each.known.numbers[each.incoming.number] = seq
            self._report.last_seq = max(self._report.last_seq, seq)

    async def _is_in_log(self, seq: int, event: LogEvent) -> bool:
        """Return whether the log still has an event that the server reported as a duplicate.

        The server remembers ids for two minutes, also the ids of erased events.
        """
        try:
            found = await self._connection.jetstream().get_msg(LOG, seq)
        except NotFoundError:
            return False
        return found.subject == event.subject and bool(found.data)

    async def _publish_without_id(self, event: LogEvent) -> int:
        """Publish an event without the id header, by which the server would drop the event as a duplicate.

        The body has the id.
        """
        publish = self._connection.jetstream().publish
        return (await retry_store(partial(publish, event.subject, event.body, stream=LOG), PAUSE)).seq


def _is_chat(event: Event) -> bool:
    """Return whether an event is a chat event; events of other types may name its position."""
    return isinstance(event, MessageV1 | StartedV1 | ClearedV1)


def _find_conflict(known: ExistingEvents, incoming: IncomingEvent) -> RefusedRecord | None:
    """Return the refusal if an event conflicts with existing events or names unknown messages; else None."""

    def get_known_number(number: int) -> int | None:
        return number if number in known.numbers else None

    known_numbers = MessagePositions(get_known_number, get_known_number, get_known_number)

    if known.has_foreign_fact(incoming.event):
        reason = "another fact of the user has, or once had, this id: import as another user"
        return RefusedRecord(incoming.place, "fact_id", reason, incoming.source)
    if has_positions(incoming.event) and map_positions(incoming.event, known_numbers) is None:
        reason = "names the number of a message that the file does not have before this line"
        return RefusedRecord(incoming.place, "body.from_seq", reason, incoming.source)
    return None


def _place_event(staged: _StagedEvent) -> _StagedEvent:
    """Return the event with log positions in place of the numbers of messages."""
    incoming, at = staged.incoming, staged.known.numbers.get
    if not has_positions(incoming.event):
        return staged
    event = map_positions(incoming.event, MessagePositions(at, at, at))
    assert event is not None, "`_find_conflict` has checked the numbers"
    wire = encode_import(staged.owner[0], incoming._replace(event=event))
    assert isinstance(wire, LogEvent), "the event was encoded with the numbers before"
    return staged._replace(wire=wire)
