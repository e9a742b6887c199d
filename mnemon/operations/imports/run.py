"""Import of the records of a reader: in batches, each event once, however often the import is repeated."""

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Final, NamedTuple

from nats.aio.client import Client
from nats.js.errors import NotFoundError

from mnemon.operations.imports.event_encoding import name_of, spelled
from mnemon.operations.imports.existing_events import There, is_empty, there
from mnemon.operations.imports.reassignment import forget_miscast
from mnemon.operations.imports.records import Doubt, ImportRecord, Incoming, Left, Recast, Refused
from mnemon.operations.imports.report import ImportReport
from mnemon.operations.memory_lines import MessagePositions, names_positions, renamed
from mnemon_consumers.domain.policy.refusal import find_refusal
from mnemon_contracts.base import Event
from mnemon_contracts.events.chat import ClearedV1, MessageV1, StartedV1
from mnemon_contracts.events.memory import FactProposedV1, FactSavedV1
from mnemon_contracts.settings.groups import Policy
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import Owner
from mnemon_infra.broker.streams.log_writer import LogEvent, append_events, retry_store
from mnemon_infra.settings.store import read_settings

BATCH: Final = 1000
"""Maximum number of events in one write to the log: the log takes no more at once."""

BATCH_BYTES: Final = 4 * 1024 * 1024
"""Maximum size of one write to the log, in bytes."""

PAUSE: Final = 1.0
"""Seconds before a batch is sent again if the log did not acknowledge it."""

_ON_ITS_WAY: Final = 0

ImportProgress = Callable[[ImportReport], None]


async def counted(
    found: AsyncIterator[ImportRecord], tenant: str | None, report: ImportReport, progress: ImportProgress
) -> ImportReport:
    """Count what an import would do, without importing anything.

    Args:
        found: the records.
        tenant: the tenant of events that name none.
        report: receives the counts.
        progress: receives the report after every `BATCH` records.

    Returns:
        The report.
    """
    number = 0
    async for each in found:
        number += 1
        if number % BATCH == 0:
            progress(report)
        match each:
            case Incoming():
                wire = spelled(str(each.tenant or tenant), each)
                if isinstance(wire, Refused):
                    report.refuse(wire)
                elif (refusing := refusal_of(each, Policy())) is not None:
                    report.refuse(refusing)
                else:
                    report.comes(each, name_of(each.event))
            case Refused():
                report.refuse(each)
            case Left():
                report.leave(each)
            case Doubt():
                report.doubt(each)
            case Recast():
                pass  # an import would erase the chat if it has other speakers in the log
    return report


def refusal_of(incoming: Incoming, policy: Policy) -> Refused | None:
    """Return the refusal of a proposal that the policy rejects; None for any other event."""
    if not isinstance(incoming.event, FactProposedV1):
        return None
    refused = find_refusal(incoming.event.text, policy)
    return Refused(incoming.place, "text", refused[1], incoming.source) if refused else None


class _Staged(NamedTuple):
    """An event of the current batch, encoded for the log, with the existing events of its user."""

    owner: Owner
    known: There
    incoming: Incoming
    wire: LogEvent


class Bringing:
    """Writes the events of an import to the log.

    In a batch, chat events go first: other events name the log positions of messages.

    Args:
        connection: of the broker.
        tenant: the tenant of events that name none.
        report: receives the counts.
        progress: receives the report after each batch.
    """

    def __init__(
        self, connection: Client, tenant: str | None, report: ImportReport, progress: ImportProgress
    ) -> None:
        self._connection = connection
        self._tenant = tenant
        self._report = report
        self._progress = progress
        self._new: dict[str, bool] = {}
        self._policies: dict[str, Policy] = {}
        self._users: dict[Owner, There] = {}
        self._batch: list[_Staged] = []
        self._bytes = 0

    async def bring(self, found: AsyncIterator[ImportRecord]) -> ImportReport:
        """Import all records; return the report.

        Raises:
            nats.errors.Error: the log does not accept a batch; the import can be repeated.
            SettingsNotProvisioned: the streams and buckets do not exist.
            NotRecast: a chat that was imported with other speakers cannot be erased now.
        """
        async for each in found:
            await self._take(each)
        await self._flush()
        return self._report

    async def _take(self, found: ImportRecord) -> None:
        match found:
            case Incoming():
                await self._stage(found)
            case Refused():
                self._report.refuse(found)
            case Left():
                self._report.leave(found)
            case Doubt():
                self._report.doubt(found)
            case Recast():
                await self._recast(found)

    async def _recast(self, recast: Recast) -> None:
        """Erase a chat that was imported with other speakers, before it is imported with these."""
        await self._flush()
        for done in await forget_miscast(self._connection, str(self._tenant), recast):
            self._report.doubt(Doubt(recast.place, done))
            self._users.clear()  # the log has fewer events now

    async def _stage(self, incoming: Incoming) -> None:
        owner = str(incoming.tenant or self._tenant), incoming.user
        wire = spelled(owner[0], incoming)
        if isinstance(wire, Refused):
            self._report.refuse(wire)
            return
        if (refusing := refusal_of(incoming, await self._policy(owner[0]))) is not None:
            self._report.refuse(refusing)
            return
        known = await self._known(owner)
        if incoming.instead is not None and not known.has_room_for(incoming.event):
            incoming = incoming._replace(event=incoming.instead, instead=None)
            await self._stage(incoming)
            return
        event = incoming.event
        seq = known.events.get(str(event.id))
        if seq is not None:
            self._report.comes(incoming, name_of(event))
            self._report.already_there += 1
            if isinstance(event, FactSavedV1):
                known.own.add(event.fact_id)
            if incoming.number is not None:
                known.numbers[incoming.number] = seq
            return
        if not _is_said(event) and (wrong := _unfit(known, incoming)) is not None:
            self._report.refuse(wrong)
            return
        self._report.comes(incoming, name_of(event))
        if len(self._batch) == BATCH or (self._batch and self._bytes + len(wire.body) > BATCH_BYTES):
            await self._flush()
        self._batch.append(_Staged(owner, known, incoming, wire))
        self._bytes += len(wire.body)
        if incoming.number is not None:
            known.numbers[incoming.number] = _ON_ITS_WAY

    async def _policy(self, tenant: str) -> Policy:
        """Return the policy of a tenant: facts that it refuses, such as secrets, must not enter the log."""
        if tenant not in self._policies:
            self._policies[tenant] = (await read_settings(self._connection, tenant)).policy
        return self._policies[tenant]

    async def _known(self, owner: Owner) -> There:
        """Return the existing events of a user.

        Keep those of the users in the current batch: sources list users one after another.
        """
        if owner not in self._users:
            tenant, _ = owner
            if tenant not in self._new:
                self._new[tenant] = await is_empty(self._connection, tenant)
            waiting = {staged.owner for staged in self._batch}
            self._users = {each: known for each, known in self._users.items() if each in waiting}
            self._users[owner] = There() if self._new[tenant] else await there(self._connection, owner)
        return self._users[owner]

    async def _flush(self) -> None:
        batch, self._batch, self._bytes = self._batch, [], 0
        await self._put([each for each in batch if _is_said(each.incoming.event)])
        await self._put([_placed(each) for each in batch if not _is_said(each.incoming.event)])
        self._progress(self._report)

    async def _put(self, staged: list[_Staged]) -> None:
        if not staged:
            return
        appended = await retry_store(
            partial(append_events, self._connection, [each.wire for each in staged]), PAUSE
        )
        for each, done in zip(staged, appended, strict=True):
            seq = done.seq
            is_twice = done.known and await self._is_there(seq, each.wire)  # the source has it twice
            if done.known and not is_twice:
                seq = await self._anew(each.wire)
            self._report.already_there += is_twice
            self._report.published += not is_twice
            if each.incoming.number is not None:
                each.known.numbers[each.incoming.number] = seq
            self._report.last_seq = max(self._report.last_seq, seq)

    async def _is_there(self, seq: int, event: LogEvent) -> bool:
        """Return whether the log still has an event that it reports as known.

        The server remembers ids for two minutes, also those of erased events.
        """
        try:
            found = await self._connection.jetstream().get_msg(LOG, seq)
        except NotFoundError:
            return False
        return found.subject == event.subject and bool(found.data)

    async def _anew(self, event: LogEvent) -> int:
        """Publish an event without the id header, which the server would recognise; its body has the id."""
        publish = self._connection.jetstream().publish
        return (await retry_store(partial(publish, event.subject, event.body, stream=LOG), PAUSE)).seq


def _is_said(event: Event) -> bool:
    """Return whether bots publish such an event; consumers derive all others."""
    return isinstance(event, MessageV1 | StartedV1 | ClearedV1)


def _unfit(known: There, incoming: Incoming) -> Refused | None:
    """Return the refusal if an event conflicts with existing events or names unknown messages."""

    def same(number: int) -> int | None:
        return number if number in known.numbers else None

    if known.is_of_another(incoming.event):
        reason = "another fact of the user has this id: forget that fact, or import as another user"
        return Refused(incoming.place, "fact_id", reason, incoming.source)
    if (
        names_positions(incoming.event)
        and renamed(incoming.event, MessagePositions(same, same, same)) is None
    ):
        reason = "refers to a message number that no earlier message has"
        return Refused(incoming.place, "body.from_seq", reason, incoming.source)
    return None


def _placed(staged: _Staged) -> _Staged:
    """Return the event with log positions in place of the numbers of messages."""
    incoming, at = staged.incoming, staged.known.numbers.get
    if not names_positions(incoming.event):
        return staged
    event = renamed(incoming.event, MessagePositions(at, at, at))
    assert event is not None, "it was looked at before"
    wire = spelled(staged.owner[0], incoming._replace(event=event))
    assert isinstance(wire, LogEvent), "it was one with other numbers"
    return staged._replace(wire=wire)
