"""Cached rows of hits: lookups give the rows of PostgreSQL, and the cache has a bound in bytes."""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from random import Random

from mnemon_consumers.retrieve.memory import cache
from mnemon_consumers.retrieve.memory.cache import UserCache
from mnemon_consumers.retrieve.memory.hit_rows import (
    MOST_DOCUMENT_BYTES,
    MOST_MESSAGE_BYTES,
    ROW_BYTES,
    HitDocuments,
    HitMessages,
)
from mnemon_infra.database.memory.documents import StoredDocument
from mnemon_infra.database.messages.lookup import AROUND, MessageLookup, Surroundings, VisibleMessage

ANNA = ("acme", "anna")
MESSAGES = 60
TOO_MANY = MOST_MESSAGE_BYTES // ROW_BYTES
"""A number of messages that exceeds the bound of the cache."""

THEN = datetime(2026, 1, 1, tzinfo=UTC)


def name(seq: int) -> str:
    return f"e{seq:03}"


def message(seq: int) -> VisibleMessage:
    return VisibleMessage(seq, name(seq), "user", f"words {seq}", None, THEN, "ab"[seq % 2])


def is_visible(seq: int) -> bool:
    return seq % 7 != 0


def looked_up(lookup: MessageLookup) -> Surroundings:
    """Return PostgreSQL's answer: two conversations alternate, and every seventh message is removed."""
    found = sorted(int(each[1:]) for each in lookup.event_ids if is_visible(int(each[1:])))
    around = Surroundings({seq: message(seq) for seq in found}, {})
    for event_id in lookup.event_ids[: lookup.anchor_count]:
        seq = int(event_id[1:])
        if is_visible(seq):
            talk = [each for each in range(seq % 2, 2 * TOO_MANY, 2) if is_visible(each)]
            place = talk.index(seq)
            stretch = talk[max(0, place - AROUND) : place + AROUND + 1]
            around.messages.update((each, message(each)) for each in stretch)
            around.following.update(pairwise(stretch))
    return around


def wanting(seqs: Sequence[int], surrounded: int = 3) -> MessageLookup:
    return MessageLookup(*ANNA, [name(seq) for seq in seqs], surrounded)


def test_cached_rows_equal_rows_of_postgresql() -> None:
    random = Random(1)
    rows = HitMessages()
    asked = 0
    for round_trip in range(200):
        wanted = wanting(random.sample(range(MESSAGES), 10), random.randrange(6))
        missing = rows.find_missing(wanted)
        if missing is not None:
            asked += len(missing.event_ids)
            rows = rows.merge(missing, looked_up(missing), 1000 + round_trip)
        answer, expected = rows.select(wanted), looked_up(wanted)
        assert answer == expected
        # Of messages with equal scores, ranking takes the first, so the order of the rows counts.
        assert [*answer.messages][: len(wanted.event_ids)] == [*expected.messages][: len(wanted.event_ids)]
        assert rows.find_missing(wanted) is None
    assert asked <= 2 * MESSAGES, "once for itself, and once more for those beside it"
    assert rows.seq == 1000, "as old as the oldest"


def test_empty_cache_has_no_rows() -> None:
    nothing = wanting([])
    assert HitMessages().find_missing(nothing) is not None
    assert HitMessages().merge(nothing, looked_up(nothing), 5).find_missing(nothing) is None
    assert HitDocuments().find_missing((ANNA, [])) == (ANNA, [])
    assert HitDocuments().merge((ANNA, []), [], 5).find_missing((ANNA, [])) is None


def test_no_more_is_held_than_the_last_searches_found() -> None:
    rows = HitMessages()
    for first in range(0, 2 * TOO_MANY, 30):
        wanted = wanting(range(first, first + 30), 8)
        rows = rows.merge(wanted, looked_up(wanted), 1).trim(wanted)
        assert rows.byte_count <= MOST_MESSAGE_BYTES
        assert rows.select(wanted) == looked_up(wanted)
    assert len(rows.places) < TOO_MANY


def document(number: int, text: str = "") -> StoredDocument:
    return StoredDocument(f"d{number:03}", number, None, None, None, None, None, f"e{number}", text)


def test_documents_are_held_too() -> None:
    rows = HitDocuments().merge((ANNA, ["d002", "d001", "d003"]), [document(1), document(2)], 7)
    assert rows.find_missing((ANNA, ["d001", "d003"])) is None
    assert rows.find_missing((ANNA, ["d001", "d004"])) == (ANNA, ["d004"])
    assert rows.select((ANNA, ["d003", "d002", "d001"])) == [document(1), document(2)]
    long = [document(number, "x" * (MOST_DOCUMENT_BYTES // 4)) for number in range(4, 9)]
    ids = [each.id for each in long]
    rows = rows.merge((ANNA, ids), long, 8)
    assert [*rows.trim((ANNA, ids[:2])).documents] == ids[:2]


def hold_document(kept: UserCache, owner: tuple[str, str], text: str) -> None:
    entry = kept.get_hit_entry(owner)
    entry[HitDocuments] = HitDocuments().merge((owner, ["d001"]), [document(1, text)], 1)
    kept.weigh_hit_entry(owner, entry)


def test_the_memory_of_all_users_has_a_bound() -> None:
    kept = UserCache(users=100)
    owners = [("acme", f"u{number}") for number in range(20)]
    for owner in owners:
        hold_document(kept, owner, "x" * (cache.FOUND_ROWS // 8))
    assert [owner for owner in reversed(owners) if kept.get_hit_entry(owner)][::-1] == owners[-7:]


def test_a_user_with_more_than_the_bound_is_not_held() -> None:
    kept = UserCache(users=100)
    hold_document(kept, ANNA, "x" * cache.FOUND_ROWS)
    assert kept.get_hit_entry(ANNA) == {}


def test_evicted_user_loses_its_rows() -> None:
    kept = UserCache(users=2)
    hold_document(kept, ANNA, "of Anna")
    for owner in ("acme", "boris"), ("acme", "clara"):
        kept.get_entry(owner)
    assert kept.get_hit_entry(ANNA) == {}


def test_rows_read_before_a_change_are_discarded() -> None:
    kept = UserCache(users=2)
    entry, revision = kept.get_hit_entry(ANNA), kept.get_revision("acme")
    assert kept.get_revision("acme") is revision
    kept.drop_user(ANNA)
    entry[HitMessages] = HitMessages(seq=5)
    kept.weigh_hit_entry(ANNA, entry)
    assert kept.get_hit_entry(ANNA) == {}
    assert kept.get_revision("acme") is not revision
    entry, revision = kept.get_hit_entry(ANNA), kept.get_revision("acme")
    kept.clear()
    assert kept.get_hit_entry(ANNA) is not entry
    assert kept.get_revision("acme") is not revision
