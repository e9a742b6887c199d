"""Plan of a restore: each position has its event or a filler, and later erasures remove events."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from mnemon.operations.backup.deployment_record import DeploymentRecord, LoggedErasure
from mnemon.operations.backup.encryption import NoCipher
from mnemon.operations.backup.manifest import Manifest, SegmentEntry, StoredFile
from mnemon.operations.backup.repository import BackupRepository
from mnemon.operations.backup.segments import LogRecord
from mnemon.operations.restore.later_erasures import LaterErasures
from mnemon.operations.restore.positions import fill_gap, plan_messages
from mnemon.operations.restore.run import Backup, find_later_erasures
from mnemon_contracts.events.erasure import ALL_BEFORE, Span, UserErasedV1
from mnemon_infra.broker.provisioning.restoration import FILLER
from mnemon_infra.storage.erasure_register import RegisterEntry
from mnemon_infra.storage.object_store import LocalStore


def record(seq: int, subject: str = "chat.acme.u1.-.message.v1", body: str = "{}") -> LogRecord:
    return LogRecord(seq, seq * 10, subject, {}, body)


@given(st.sets(st.integers(1, 60)), st.integers(0, 60))
def test_every_position_gets_one_message(positions: set[int], last: int) -> None:
    records = [record(each) for each in sorted(positions)]
    messages = list(plan_messages(records, last))
    written = {last + place: message for place, message in enumerate(messages, 1)}
    beyond = {each for each in positions if each > last}
    assert max(written, default=last) == max(beyond, default=last)
    assert {place for place, message in written.items() if message is not FILLER} == beyond
    assert all(written[each].headers["Mnemon-Stored-At"] == f"{each}:{each * 10}" for each in beyond)


def test_gap_between_positions_is_filled() -> None:
    assert list(fill_gap(3, 5)) == [FILLER, FILLER]
    assert list(fill_gap(5, 5)) == list(fill_gap(7, 5)) == []


def erasure(user: str = "u1", at: int = 1000, **fields: object) -> RegisterEntry:
    event = UserErasedV1.model_validate({"up_to_seq": ALL_BEFORE, **fields})
    return RegisterEntry(tenant="acme", user=user, event_id="e", position=90, at=at, event=event)


def test_erasures_after_the_last_event_are_applied() -> None:
    early, late, known = erasure("u1", 99), erasure("u2", 101), erasure("u3", 101)
    file = StoredFile(name="segments/1", size=1, sha256="x")
    last = SegmentEntry(first=1, last=90, last_stored_at=100, events=90, is_full=False, file=file)
    manifest = Manifest(
        mnemon="1", backup_id="b", created_at="now", is_complete=True, position=90, segments=(last,)
    )
    record = DeploymentRecord(erasures=[LoggedErasure("acme", "u3", "e", 90)])
    backup = Backup(BackupRepository(LocalStore(Path("nowhere")), NoCipher()), manifest, record)
    assert find_later_erasures(backup, [early, late, known]).entries == [late]


def test_an_erased_user_has_no_event_in_any_spelling() -> None:
    erasures = LaterErasures([erasure("é")])
    assert erasures.removes(record(1, "chat.acme.é.-.message.v1"))
    assert erasures.removes(record(2, "memory.acme.é.fact.saved.v1"))
    assert erasures.removes(record(3, "chat.acme.%C3%A9.-.message.v1"))
    assert not erasures.removes(record(4, "chat.acme.e.-.message.v1"))
    assert not erasures.removes(record(5, "chat.other.é.-.message.v1"))
    assert not erasures.removes(record(6, "no subject of an event"))


def test_an_erasure_up_to_a_position_leaves_later_events() -> None:
    erasures = LaterErasures([erasure(up_to_seq=5)])
    assert erasures.removes(record(4))
    assert not erasures.removes(record(5))


def test_an_erased_conversation_leaves_the_user() -> None:
    spans = (Span(from_seq=10, to_seq=20),)
    erasures = LaterErasures(
        [erasure(up_to_seq=60, conversation="trip", spans=spans, derived=(31,), discarded_seq=77)]
    )
    removed = [
        record(1, "chat.acme.u1.trip.message.v1"),
        record(12),
        record(31, "memory.acme.u1.fact.saved.v1"),
        record(
            32,
            "memory.acme.u1.summary.written.v1",
            '{"summary_id":"s","conversation":"trip","from_seq":1,"to_seq":9,"text":"x"}',
        ),
    ]
    kept = [
        record(2, "chat.acme.u1.work.message.v1"),
        record(21),
        record(30, "memory.acme.u1.fact.saved.v1", '{"fact_id":"a","fact":{"text":"x"}}'),
        record(33, "memory.acme.u1.profile.set.v1", '{"fields":{}}'),
        record(34, "memory.acme.u1.user.erased.v1", '{"up_to_seq":3,"conversation":"trip"}'),
        record(61, "chat.acme.u1.trip.message.v1"),
    ]
    assert [each.seq for each in (*removed, *kept) if erasures.removes(each)] == [1, 12, 31, 32]


def test_the_event_of_a_later_erasure_names_no_lost_position() -> None:
    entry = erasure(up_to_seq=80, conversation="trip", derived=(31, 75), discarded_seq=77)
    (message,) = LaterErasures([entry]).build_messages(60)
    assert message.subject == "memory.acme.u1.user.erased.v1"
    assert message.headers == {"Nats-Msg-Id": "e"}
    event = UserErasedV1.parse(message.body)
    assert (event.derived, event.discarded_seq, event.conversation) == ((31,), None, "trip")


def test_the_event_of_a_later_erasure_has_no_span_beyond_the_backup() -> None:
    spans = tuple(Span(from_seq=begin, to_seq=end) for begin, end in ((10, 20), (55, 70), (61, 64), (75, 80)))
    entry = erasure(up_to_seq=80, conversation="trip", spans=spans)
    (message,) = LaterErasures([entry]).build_messages(60)
    event = UserErasedV1.parse(message.body)
    assert event.spans == (Span(from_seq=10, to_seq=20), Span(from_seq=55, to_seq=61))
