"""Erasures that a backup lacks: the events that they remove, and their own events for the log. No I/O."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from mnemon.operations.backup.segments import LogRecord
from mnemon_contracts.events.erasure import Span, UserErasedV1
from mnemon_contracts.identity import MESSAGE_ID
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import Owner, build_memory_subject, find_origin
from mnemon_infra.broker.erasure.scope import DERIVED, ErasedConversation, ErasedUser
from mnemon_infra.broker.provisioning.restoration import ExactMessage
from mnemon_infra.delivery import Delivery
from mnemon_infra.storage.erasure_register import RegisterEntry

_ERASURE_SUBJECT: Final = "user.erased"


class LaterErasures:
    """The erasures that a restore applies to the events of a backup.

    When the restore ends, the log has none of the events that they remove.
    """

    def __init__(self, entries: Sequence[RegisterEntry]) -> None:
        self.entries = entries
        self._scopes: defaultdict[Owner, list[ErasedUser | ErasedConversation]] = defaultdict(list)
        for each in entries:
            self._scopes[each.owner].append(_build_scope(each))

    def removes(self, record: LogRecord) -> bool:
        """Return whether one of the erasures removes an event of the backup."""
        if not self._scopes:
            return False
        origin = find_origin(record.subject)
        scopes = self._scopes.get(origin.owner, ()) if origin else ()
        if not scopes:
            return False
        delivery = Delivery(record.subject, record.payload, None, LOG, record.seq, 1, record.at / 1e9)
        return any(_removes(each, delivery) for each in scopes)

    def build_messages(self, position: int) -> list[ExactMessage]:
        """Return the events of the erasures, to append to a restored log.

        Args:
            position: last position of the backup. The events do not name later positions as derived or
                discarded, or in spans: the restored log has other events there.
        """
        return [
            ExactMessage(
                build_memory_subject(*entry.owner, _ERASURE_SUBJECT),
                {MESSAGE_ID: entry.event_id},
                _limit_event(entry.event, position).encode_body(),
            )
            for entry in self.entries
        ]


def _build_scope(entry: RegisterEntry) -> ErasedUser | ErasedConversation:
    at = datetime.fromtimestamp(entry.at / 1e9, UTC)
    if entry.event.conversation is None:
        return ErasedUser(entry.owner, min(entry.event.up_to_seq, entry.position), at)
    return ErasedConversation.from_event(entry.owner, entry.event, entry.event_id, entry.position, at)


def _removes(scope: ErasedUser | ErasedConversation, delivery: Delivery) -> bool:
    """Return whether an erasure removes an event.

    The erasure of a conversation keeps memory events that are not `DERIVED`, such as `profile.set`.
    """
    space, *_, name = delivery.subject.split(".", 3)
    is_kept = space == "memory" and name.partition(".")[0] not in DERIVED
    return scope.removes(delivery) and not (is_kept and isinstance(scope, ErasedConversation))


def _limit_event(event: UserErasedV1, position: int) -> UserErasedV1:
    """Return the event without positions after `position` in `spans`, `derived` and `discarded_seq`."""
    discarded = event.discarded_seq
    return event.model_copy(
        update={
            "spans": tuple(
                Span(from_seq=each.from_seq, to_seq=min(each.to_seq, position + 1))
                for each in event.spans
                if each.from_seq <= position
            ),
            "derived": tuple(each for each in event.derived if each <= position),
            "discarded_seq": discarded if discarded is not None and discarded <= position else None,
        }
    )
