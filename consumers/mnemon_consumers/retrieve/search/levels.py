"""Scopes and levels of memory, resolved to the parts of a user's memory that a search covers. No I/O."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Literal, NamedTuple

from mnemon_contracts.events.memory import Tier
from mnemon_contracts.verbs.tools import FoundScope, SearchScope
from mnemon_infra.database.messages.lookup import Surroundings, VisibleMessage

Part = Literal[Tier, "recent", "earlier", "all"]
"""Facts of a tier; messages within `RecentWindow`, or all other messages; or everything in a scope."""

ScopeParts = frozenset[Part]

WHOLE: Final[Mapping[FoundScope, ScopeParts]] = {
    "memories": frozenset({"profile", "working", "archive"}),
    "messages": frozenset({"recent", "earlier"}),
    "documents": frozenset({"all"}),
    "summaries": frozenset({"all"}),
}
"""All parts of each scope."""

_NAMED: Final[Mapping[SearchScope, Mapping[FoundScope, ScopeParts]]] = {
    **{scope: {scope: parts} for scope, parts in WHOLE.items()},
    "short": {"messages": frozenset({"recent"})},
    "medium": {"summaries": frozenset({"all"}), "memories": frozenset({"working"})},
    "long": {
        "memories": frozenset({"profile", "archive"}),
        "messages": frozenset({"earlier"}),
        "documents": frozenset({"all"}),
    },
}


class RecentWindow(NamedTuple):
    """The number of newest messages of a conversation that count as recent.

    The conversation None is the current conversation.
    """

    conversation: str | None
    messages: int


NO_WINDOW: Final = RecentWindow(None, 0)


def resolve_parts(scopes: Iterable[SearchScope]) -> dict[FoundScope, ScopeParts]:
    """Return the scopes to search, each with its parts, in the order of `scopes`."""
    found: dict[FoundScope, ScopeParts] = {}
    for named in scopes:
        for scope, parts in _NAMED[named].items():
            found[scope] = found.get(scope, frozenset()) | parts
    return found


def filter_messages(around: Surroundings, is_wanted: Callable[[VisibleMessage], bool]) -> Surroundings:
    """Return the found messages and neighbours for which `is_wanted` returns True."""
    messages = {seq: each for seq, each in around.messages.items() if is_wanted(each)}
    following = {
        seq: after for seq, after in around.following.items() if seq in messages and after in messages
    }
    return Surroundings(messages, following)
