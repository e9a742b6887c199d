"""Cache of PostgreSQL rows that searches of one user looked up. A change of the user's memory drops the rows.

Each search queries the vector store, which may have new points, and PostgreSQL only for rows that the cache
lacks.
"""

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, Protocol, Self, TypeVar

from mnemon_contracts.subjects import Owner
from mnemon_infra.database.memory.documents import StoredDocument
from mnemon_infra.database.messages.lookup import AROUND, MessageLookup, Surroundings

MOST_MESSAGE_BYTES: Final = 1024 * 1024
"""Approximate number of bytes of one user's messages, above which only those of the last search stay cached:
enough for 800 short messages."""

MOST_DOCUMENT_BYTES: Final = 8 * 1024 * 1024
"""Approximate number of bytes of one user's documents, above which only those of the last search stay
cached."""

ROW_BYTES: Final = 500
"""Approximate number of bytes that a row takes besides its text."""

RowLookup = TypeVar("RowLookup")
Value = TypeVar("Value")
OwnedIds = tuple[Owner, Sequence[str]]


class HitRows(Protocol[RowLookup, Value]):
    """Rows of one kind that were looked up for one user."""

    @property
    def seq(self) -> int | None:
        """Return the log position that all rows reflect; None if nothing was looked up."""

    def find_missing(self, lookup: RowLookup) -> RowLookup | None:
        """Return the part of the request that has to be looked up; None if nothing is missing."""

    def merge(self, lookup: RowLookup, rows: Value, seq: int) -> Self:
        """Return these rows together with `rows`, the result of `lookup`.

        `seq` is the log position that `rows` reflect.
        """

    def trim(self, lookup: RowLookup) -> Self:
        """Return the rows to cache: all rows, or only the last requested rows if there are too many."""

    def select(self, lookup: RowLookup) -> Value:
        """Return the requested rows, as PostgreSQL would return them. All of these rows must be cached."""

    @property
    def byte_count(self) -> int:
        """Return the approximate number of bytes that the rows take."""


@dataclass(frozen=True)
class HitMessages:
    """Messages that searches of one user looked up, and the messages around some of them.

    Attributes:
        seq: the log position that the messages reflect; None if nothing was looked up.
        places: log positions by event id; None for a message that is removed or unknown.
        anchors: event ids of the messages whose neighbours are known.
        around: the messages and their neighbours.
    """

    seq: int | None = None
    places: Mapping[str, int | None] = field(default_factory=dict)
    anchors: frozenset[str] = frozenset()
    around: Surroundings = field(default_factory=lambda: Surroundings({}, {}))

    def find_missing(self, lookup: MessageLookup) -> MessageLookup | None:
        bare = [each for each in _list_anchors(lookup) if each not in self.anchors]
        unknown = [each for each in lookup.event_ids[lookup.anchor_count :] if each not in self.places]
        if not bare and not unknown and self.seq is not None:
            return None
        return lookup._replace(event_ids=(*bare, *unknown), anchor_count=len(bare))

    def merge(self, lookup: MessageLookup, rows: Surroundings, seq: int) -> Self:
        places = {each.event_id: each.seq for each in rows.messages.values()}
        return replace(
            self,
            seq=seq if self.seq is None else min(seq, self.seq),
            places={**self.places, **{each: places.get(each) for each in lookup.event_ids}},
            anchors=self.anchors.union(_list_anchors(lookup)),
            around=Surroundings(
                {**self.around.messages, **rows.messages}, {**self.around.following, **rows.following}
            ),
        )

    def trim(self, lookup: MessageLookup) -> Self:
        if self.byte_count <= MOST_MESSAGE_BYTES:
            return self
        return replace(
            self,
            places={each: self.places[each] for each in lookup.event_ids},
            anchors=frozenset(_list_anchors(lookup)),
            around=self.select(lookup),
        )

    def select(self, lookup: MessageLookup) -> Surroundings:
        places = {each: seq for each in lookup.event_ids if (seq := self.places[each]) is not None}
        # The requested messages in the order of the log, then their neighbours.
        around = Surroundings({seq: self.around.messages[seq] for seq in sorted(places.values())}, {})
        for seq in [places[each] for each in _list_anchors(lookup) if each in places]:
            before = [*_walk_neighbours(self._preceding, seq)]
            sequence = [*reversed(before), seq, *_walk_neighbours(self.around.following, seq)]
            around.messages.update((each, self.around.messages[each]) for each in sequence)
            around.following.update(pairwise(sequence))
        return around

    @cached_property
    def _preceding(self) -> Mapping[int, int]:
        return {after: before for before, after in self.around.following.items()}

    @cached_property
    def byte_count(self) -> int:
        return _estimate_rows(self.places, [each.content for each in self.around.messages.values()])


@dataclass(frozen=True)
class HitDocuments:
    """Documents that searches of one user looked up, with their texts.

    Attributes:
        seq: the log position that the documents reflect; None if nothing was looked up.
        documents: documents by id; None for a document that does not exist.
    """

    seq: int | None = None
    documents: Mapping[str, StoredDocument | None] = field(default_factory=dict)

    def find_missing(self, lookup: OwnedIds) -> OwnedIds | None:
        owner, ids = lookup
        unknown = [each for each in ids if each not in self.documents]
        return (owner, unknown) if unknown or self.seq is None else None

    def merge(self, lookup: OwnedIds, rows: Sequence[StoredDocument], seq: int) -> Self:
        documents = {each.id: each for each in rows}
        return replace(
            self,
            seq=seq if self.seq is None else min(seq, self.seq),
            documents={**self.documents, **{each: documents.get(each) for each in lookup[1]}},
        )

    def trim(self, lookup: OwnedIds) -> Self:
        if self.byte_count <= MOST_DOCUMENT_BYTES:
            return self
        return replace(self, documents={each: self.documents[each] for each in lookup[1]})

    def select(self, lookup: OwnedIds) -> list[StoredDocument]:
        return sorted(document for each in lookup[1] if (document := self.documents[each]) is not None)

    @cached_property
    def byte_count(self) -> int:
        return _estimate_rows(self.documents, [each.text for each in self.documents.values() if each])


def estimate_memory(parts: Mapping[Any, HitRows[Any, Any]]) -> int:
    """Estimate the bytes that all rows of one user take."""
    return ROW_BYTES + sum(rows.byte_count for rows in parts.values())


def _list_anchors(lookup: MessageLookup) -> Sequence[str]:
    """Return the event ids of the messages whose neighbours are requested."""
    return lookup.event_ids[: lookup.anchor_count]


def _walk_neighbours(neighbours: Mapping[int, int], seq: int) -> Iterator[int]:
    for _ in range(AROUND):
        if seq not in neighbours:
            return
        seq = neighbours[seq]
        yield seq


def _estimate_rows(ids: Collection[str], texts: Collection[str]) -> int:
    return ROW_BYTES * (len(ids) + len(texts)) + sum(map(sys.getsizeof, texts))
