"""Bringing in what a reader found: in batches, each event once, however often it is begun."""

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
from mnemon_consumers.domain.policy.refusal import refusal
from mnemon_contracts.base import Event
from mnemon_contracts.events.chat import ClearedV1, MessageV1, StartedV1
from mnemon_contracts.events.memory import FactProposedV1, FactSavedV1
from mnemon_contracts.settings.groups import Policy
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import Owner
from mnemon_infra.broker.streams.log_writer import LogEvent, append, insist
from mnemon_infra.settings.store import read

BATCH: Final = 1000
"""Events that go into the log together, at most: as many as it takes at once."""

BATCH_BYTES: Final = 4 * 1024 * 1024
"""The same in bytes."""

PAUSE: Final = 1.0
"""Seconds before a batch is sent again that the log did not acknowledge."""

_ON_ITS_WAY: Final = 0

ImportProgress = Callable[[ImportReport], None]


async def counted(
    found: AsyncIterator[ImportRecord], tenant: str | None, report: ImportReport, progress: ImportProgress
) -> ImportReport:
    """What would come in; nothing does. `progress` is told now and then."""
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
                pass  # what came in with other speakers would be forgotten
    return report


def refusal_of(incoming: Incoming, policy: Policy) -> Refused | None:
    """Why a fact that would be proposed would not be kept; None where nothing speaks against it."""
    if not isinstance(incoming.event, FactProposedV1):
        return None
    refused = refusal(incoming.event.text, policy)
    return Refused(incoming.place, "text", refused[1], incoming.source) if refused else None


class _Staged(NamedTuple):
    """An event of the batch in hand, as it goes to the log, and what is known of its user."""

    owner: Owner
    known: There
    incoming: Incoming
    wire: LogEvent


class Bringing:
    """Brings events in. What was said goes before what was made of it, which names the places it got.

    Args:
        connection: to the log.
        tenant: whose events are those that name no tenant.
        report: told what comes of them.
        progress: told after each batch.
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
        """Bring all of it in.

        Raises:
            nats.errors.Error: the log does not take it; it can be begun again.
            SettingsNotProvisioned: the streams and buckets are not there.
            NotRecast: a chat that came in with other speakers cannot be forgotten now.
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
        """Forget what came in with other speakers, before it comes in with these."""
        await self._flush()
        for done in await forget_miscast(self._connection, str(self._tenant), recast):
            self._report.doubt(Doubt(recast.place, done))
            self._users.clear()  # the log has less now

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
        """Which facts a tenant refuses: a secret does not even come into the log."""
        if tenant not in self._policies:
            self._policies[tenant] = (await read(self._connection, tenant)).policy
        return self._policies[tenant]

    async def _known(self, owner: Owner) -> There:
        """What there is of a user. Of the one in hand it is kept: sources have users one after another."""
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
        appended = await insist(partial(append, self._connection, [each.wire for each in staged]), PAUSE)
        for each, done in zip(staged, appended, strict=True):
            seq = done.seq
            is_twice = done.known and await self._is_there(seq, each.wire)  # twice in the source
            if done.known and not is_twice:
                seq = await self._anew(each.wire)
            self._report.already_there += is_twice
            self._report.published += not is_twice
            if each.incoming.number is not None:
                each.known.numbers[each.incoming.number] = seq
            self._report.last_seq = max(self._report.last_seq, seq)

    async def _is_there(self, seq: int, event: LogEvent) -> bool:
        """Whether the log has what it says it has: it remembers ids for two minutes, erased ones too."""
        try:
            found = await self._connection.jetstream().get_msg(LOG, seq)
        except NotFoundError:
            return False
        return found.subject == event.subject and bool(found.data)

    async def _anew(self, event: LogEvent) -> int:
        """Without the header that the log knows it by; its body has its id."""
        publish = self._connection.jetstream().publish
        return (await insist(partial(publish, event.subject, event.body, stream=LOG), PAUSE)).seq


def _is_said(event: Event) -> bool:
    """Whether a bot says such things; everything else is made of them, or known."""
    return isinstance(event, MessageV1 | StartedV1 | ClearedV1)


def _unfit(known: There, incoming: Incoming) -> Refused | None:
    """Why what was made of messages cannot stand beside what there is; None where it can."""

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
    """The same with log positions in place of the numbers of messages."""
    incoming, at = staged.incoming, staged.known.numbers.get
    if not names_positions(incoming.event):
        return staged
    event = renamed(incoming.event, MessagePositions(at, at, at))
    assert event is not None, "it was looked at before"
    wire = spelled(staged.owner[0], incoming._replace(event=event))
    assert isinstance(wire, LogEvent), "it was one with other numbers"
    return staged._replace(wire=wire)
