"""Parts of a user's memory that a search covers, by its scopes and levels."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import get_args

import pytest

from mnemon_consumers.retrieve.search.levels import WHOLE, filter_messages, resolve_parts
from mnemon_contracts.verbs.tools import FoundScope, MemoryLevel, SearchScope
from mnemon_infra.database.messages.lookup import Surroundings, VisibleMessage


def test_a_scope_is_all_of_its_parts() -> None:
    assert WHOLE.keys() == set(get_args(FoundScope))
    for scope, parts in WHOLE.items():
        assert resolve_parts([scope, scope]) == {scope: parts}


def test_levels_are_disjoint_and_cover_all_parts() -> None:
    levels: Sequence[MemoryLevel] = get_args(MemoryLevel)
    pairs = [
        (scope, part) for level in levels for scope, parts in resolve_parts([level]).items() for part in parts
    ]
    assert len(pairs) == len(set(pairs))
    assert resolve_parts(levels) == WHOLE


@pytest.mark.parametrize(
    ("scopes", "expected"),
    [
        (["short"], {"messages": {"recent"}}),
        (["medium"], {"summaries": {"all"}, "memories": {"working"}}),
        (["documents", "short"], {"documents": {"all"}, "messages": {"recent"}}),
        (["long", "short"], {
            "memories": {"profile", "archive"}, "messages": {"earlier", "recent"}, "documents": {"all"}
        }),
    ],
)  # fmt: skip
def test_several_scopes_add_up(
    scopes: Sequence[SearchScope], expected: Mapping[FoundScope, set[str]]
) -> None:
    assert resolve_parts(scopes) == expected


def test_excluded_level_has_no_neighbours() -> None:
    def said(seq: int) -> VisibleMessage:
        return VisibleMessage(seq, f"m{seq}", "user", "hello", None, datetime(2026, 1, 1, tzinfo=UTC), "c")

    around = Surroundings({seq: said(seq) for seq in (1, 2, 3, 4)}, {1: 2, 2: 3, 3: 4})
    assert filter_messages(around, lambda each: each.seq > 2) == Surroundings(
        {3: said(3), 4: said(4)}, {3: 4}
    )
