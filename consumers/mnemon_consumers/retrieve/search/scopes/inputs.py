"""Inputs of the search of a scope, and its answer; both are the same for all scopes."""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from mnemon_consumers.retrieve.search.candidates import Breadth
from mnemon_consumers.retrieve.search.hits import RankedHit
from mnemon_consumers.retrieve.search.levels import RecentWindow, ScopeParts
from mnemon_consumers.retrieve.search.query.query_embedder import EmbeddedQuery
from mnemon_contracts.settings.groups import Retrieval
from mnemon_contracts.verbs.tools import FoundScope

ScopeAnswer: TypeAlias = tuple[list[RankedHit], int]
"""The hits of a scope, best first, and the log position that they reflect."""


class ScopeInputs(NamedTuple):
    """A query with all that the search of a scope depends on.

    Attributes:
        query: the query, with its user.
        limit: number of hits that the caller uses at most; a scope may return more.
        settings: settings of the tenant.
        min_seq: log position that the hits have to reflect; None for any.
        breadth: numbers of items that the search considers.
        documents: values of `collection` or `origin` that documents must have; empty for all documents.
        parts: the parts to search of each scope.
        window: the messages that are recent.
        explain: whether hits have the parts of their scores.
    """

    query: EmbeddedQuery
    limit: int
    settings: Retrieval
    min_seq: int | None
    breadth: Breadth
    documents: Mapping[str, str]
    parts: Mapping[FoundScope, ScopeParts]
    window: RecentWindow
    explain: bool
