"""`search`: return items that are relevant to a query."""

from collections.abc import Coroutine
from typing import Any, Final
from zoneinfo import ZoneInfo

from mnemon_consumers.retrieve.memory.memory import Memory
from mnemon_consumers.retrieve.search.hits import RankedHit, SearchResult
from mnemon_consumers.retrieve.search.levels import RecentWindow
from mnemon_consumers.retrieve.search.service import Search
from mnemon_consumers.retrieve.snapshots.snapshot_resolver import MemoryView, SnapshotMoment, SnapshotResolver
from mnemon_consumers.retrieve.verbs.request_context import await_reply, get_current_time
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_contracts.subjects import Address, Owner
from mnemon_contracts.verbs.ask import Reply
from mnemon_contracts.verbs.tools import (
    DocumentPassage,
    SearchHitV2,
    SearchReplyV2,
    SearchScope,
    SearchV1,
    SearchV2,
)
from mnemon_infra.database.memory.documents import StoredDocument
from mnemon_infra.settings.store import LiveSettings

LONGEST_MESSAGE: Final = 4000
"""Maximum number of characters of a message in a hit, so that replies stay small. `history` returns the whole
message."""


class SearchVerb:
    """Answers `search`: the items that are relevant to a query."""

    def __init__(
        self, memory: Memory, search: Search, snapshots: SnapshotResolver, settings: LiveSettings
    ) -> None:
        self._memory = memory
        self._search = search
        self._snapshots = snapshots
        self._settings = settings

    def search(self, address: Address, body: bytes) -> Coroutine[Any, Any, Reply]:
        request = SearchV1.parse(body).upcast() if address.version == 1 else SearchV2.parse(body)
        owner = address.owner
        settings = self._settings.get_settings(address.tenant)

        async def search_as_of(moment: SnapshotMoment) -> Reply:
            async with self._snapshots.open_view(owner, moment, request.min_seq) as view:
                return await _search_view(view, owner, request, None, settings)

        if request.as_of is not None:
            return await_reply(search_as_of(request.as_of))
        live = MemoryView(self._memory, self._search, get_current_time())
        return await_reply(_search_view(live, owner, request, request.min_seq, settings))


async def _search_view(
    view: MemoryView, owner: Owner, request: SearchV2, min_seq: int | None, settings: SettingsV1
) -> SearchReplyV2:
    retrieval = settings.retrieval
    asked = {"collection": request.collection, "origin": request.origin}
    documents = {name: value for name, value in asked.items() if value is not None}
    only_documents: tuple[SearchScope, ...] = ("documents",)
    limit = request.limit if "limit" in request.model_fields_set else retrieval.limit
    # The position is read before the search: events that are indexed during the search may be missing from
    # the hits.
    indexed = await view.memory.await_indexed_position(owner, min_seq)
    reference_time = (request.now or view.now).astimezone(ZoneInfo(settings.time_stamps.zone))
    query = await view.search.embed_query(
        owner, request.query, view.now, request.preceding or (), reference_time
    )
    found = await view.search.find_hits(
        query,
        only_documents if documents and "scope" not in request.model_fields_set else request.scope,
        limit,
        request.threshold if request.threshold is not None else retrieval.threshold,
        retrieval,
        min_seq,
        documents,
        RecentWindow(request.conversation, settings.recent_messages),
        explain=request.explain,
    )
    # A snapshot has a fixed position, even if it could not be read.
    seen = indexed if request.as_of is not None else min(found.seq, indexed)
    return build_search_reply(found, limit, seen)


def build_search_reply(result: SearchResult, limit: int, seen_seq: int) -> SearchReplyV2:
    """Return the best hits as a reply of either version; requests of version 1 exclude summaries.

    Args:
        result: the hits of all scopes.
        limit: maximum number of hits.
        seen_seq: log position that the reply reflects.
    """
    hits = tuple(
        SearchHitV2.model_construct(
            id=hit.id,
            scope=hit.scope,
            text=_shorten_hit(hit),
            score=round(hit.score, 4),
            at=hit.at,
            parts=None if hit.parts is None else {name: round(part, 4) for name, part in hit.parts.items()},
            passage=_build_passage(hit),
        )
        for hit in result.hits[:limit]
    )
    return SearchReplyV2.model_construct(seen_seq=seen_seq, hits=hits, degraded=result.degraded)


def _build_passage(hit: RankedHit) -> DocumentPassage | None:
    document = hit.source
    if not isinstance(document, StoredDocument):
        return None
    first_line = document.text.count("\n", 0, hit.start) + 1
    return DocumentPassage.model_construct(
        title=document.title,
        source=document.source,
        collection=document.collection,
        first_line=first_line,
        last_line=first_line + hit.text.rstrip("\n").count("\n"),
    )


def _shorten_hit(hit: RankedHit) -> str:
    if hit.scope == "messages" and len(hit.text) > LONGEST_MESSAGE:
        return f"{hit.text[: LONGEST_MESSAGE - 1]}…"
    return hit.text
