"""`context`: return the context that a bot puts before a model."""

import asyncio
from collections.abc import Awaitable, Coroutine, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo

from mnemon_consumers.retrieve import decide
from mnemon_consumers.retrieve.context.budget import fit_context
from mnemon_consumers.retrieve.context.contents import SECTIONS, SectionKind
from mnemon_consumers.retrieve.context.formats import LAYOUTS_BY_LANGUAGE, TYPED_LAYOUTS
from mnemon_consumers.retrieve.context.query import build_query
from mnemon_consumers.retrieve.memory.memory import Memory
from mnemon_consumers.retrieve.search.hits import SearchResult
from mnemon_consumers.retrieve.search.query.query_embedder import EmbeddedQuery
from mnemon_consumers.retrieve.search.service import Search
from mnemon_consumers.retrieve.snapshots.snapshot_resolver import SnapshotMoment, SnapshotResolver
from mnemon_consumers.retrieve.turn import (
    ContextParts,
    ContextTurn,
    Missing,
    await_read,
    find_cached_parts,
    read_parts,
    read_unsummarised_messages,
)
from mnemon_consumers.retrieve.verbs.request_context import await_reply, get_current_time
from mnemon_contracts.events.chat import FROM_MEMORY
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_contracts.subjects import Address, Owner
from mnemon_contracts.verbs.ask import ContextReplyV1, ContextV1, Reply
from mnemon_infra.database.query_batcher import yield_to_lookups
from mnemon_infra.models import tokens
from mnemon_infra.process.cancellation import suppress_task_error
from mnemon_infra.settings.store import LiveSettings
from mnemon_infra.telemetry.metrics import CACHE

SEARCH_TIMEOUT: Final = 1.2
"""Maximum wait for the search, in seconds: enough for a search by words after a wait for an embedding. The
time limit of a reranker is added."""

READ_SECONDS: Final = 2.2
"""Maximum wait for the parts of memory, in seconds; parts that are not read by then are missing."""

ANSWER_SECONDS: Final = 2.5
"""Seconds after the request at which the wait for the search ends at the latest: a bot waits for 3 s."""

MOST_REPEATED: Final = 20
"""Maximum number of additional hits that a search returns, because the section `recent` may already show
some of the hits. If the setting `recent_messages` is greater, the setting is the number."""

TASK_RESULTS: Final = 10
"""Maximum number of a task's newest results in the query, which seldom has room for more."""

SEARCHED: Final[Mapping[str, SectionKind]] = {
    "memories": "relevant",
    "messages": "conversation",
    "documents": "documents",
}
"""The section that each scope fills; a context searches no other scope."""

_NEVER: Final = datetime.max.replace(tzinfo=UTC)


class _CachedReply(NamedTuple):
    """A cached reply and its conditions: settings, first expiry of a fact, and the time in the reply."""

    reply: ContextReplyV1
    settings: SettingsV1
    until: datetime
    current_time: str | None


class ContextVerb:
    """Answers `context`: a user's memory in the form that a model is given."""

    def __init__(
        self, memory: Memory, search: Search | None, snapshots: SnapshotResolver, settings: LiveSettings
    ) -> None:
        self._memory = memory
        self._search = search
        self._snapshots = snapshots
        self._settings = settings

    def context(self, address: Address, body: bytes) -> Reply | Coroutine[Any, Any, Reply]:
        request = ContextV1.parse(body or b"{}")
        owner, settings = address.owner, self._settings.get_settings(address.tenant)
        if request.as_of is not None:
            return await_reply(self._read_reply_as_of(request.as_of, owner, request, settings))
        turn = ContextTurn(owner, request, settings, get_current_time(), self._memory, self._search)
        cached = self._find_cached_reply(turn) if turn.search is None or not turn.scopes else None
        return cached or await_reply(self._read_reply(turn))

    async def _read_reply_as_of(
        self, moment: SnapshotMoment, owner: Owner, request: ContextV1, settings: SettingsV1
    ) -> Reply:
        async with self._snapshots.open_view(owner, moment, request.min_seq) as (memory, search, then):
            reflected = request.model_copy(update={"min_seq": None})
            return await self._read_reply(ContextTurn(owner, reflected, settings, then, memory, search))

    def _find_cached_reply(self, turn: ContextTurn) -> Reply | None:
        """Return the reply if all its parts are cached, else None; cache the reply until a part changes."""
        owner, request, settings, moment, memory, _ = turn
        entry = memory.get_entry(owner)
        place = "context", request.conversation, request.format, request.budget
        made: _CachedReply | None = entry.get(place)
        current_time = decide.format_current_time(settings, moment)
        if (
            made
            and made.settings is settings
            and made.until > moment
            and made.current_time == current_time
            and made.reply.seen_seq >= (request.min_seq or 0)
        ):
            CACHE.add("context", "hit")
            return made.reply
        CACHE.add("context", "miss")
        parts = find_cached_parts(turn)
        if parts is None:
            return None
        reply = _build_reply(turn, parts, None, {})
        expiries = (fact.expires_at for fact in parts.facts.value if fact.expires_at) if parts.facts else ()
        until = min((expiry for expiry in expiries if expiry > moment), default=_NEVER)
        entry[place] = _CachedReply(reply, settings, until, current_time)
        return reply

    async def _read_reply(self, turn: ContextTurn) -> Reply:
        time = asyncio.get_running_loop().time
        started = time()
        read_by = started + READ_SECONDS
        missing: Missing = {}
        embedding = asyncio.create_task(_embed_given_query(turn))
        embedding.add_done_callback(suppress_task_error)
        try:
            parts = await read_parts(turn, read_by, missing)
            if not any(parts[:4]):
                raise missing["recent"]
            # The search starts after the reads: how many hits it has to find depends on what they return.
            retrieval = turn.settings.retrieval
            reranking = retrieval.reranker_timeout_ms / 1000 if retrieval.reranker else 0.0
            found_by = min(time() + SEARCH_TIMEOUT + reranking, started + ANSWER_SECONDS)
            sections = (SEARCHED[scope] for scope in turn.scopes)
            found, parts = await asyncio.gather(
                await_read(_search_memory(turn, parts, embedding, found_by), found_by, missing, *sections),
                read_unsummarised_messages(turn, parts, read_by, missing),
            )
            return _build_reply(turn, parts, found, missing)
        finally:
            embedding.cancel()


async def _embed_given_query(turn: ContextTurn) -> EmbeddedQuery | None:
    """Embed the query of the request while the database reads.

    Returns:
        None if nothing is searched, or if the query needs the last message of the user or results of a task.
    """
    if turn.request.task_id is not None or turn.search is None or not turn.scopes:
        return None
    query = build_query(turn.request.query, None, ())
    if query is None:
        return None
    await yield_to_lookups()
    return await _embed_query(turn, turn.search, query)


async def _embed_query(turn: ContextTurn, search: Search, query: str) -> EmbeddedQuery:
    reference_time = (turn.request.now or turn.now).astimezone(ZoneInfo(turn.settings.time_stamps.zone))
    preceding = turn.request.preceding or ()
    return await search.embed_query(turn.owner, query, turn.now, preceding, reference_time)


async def _search_memory(
    turn: ContextTurn, parts: ContextParts, embedding: Awaitable[EmbeddedQuery | None], until: float
) -> SearchResult | None:
    """Search memory for the turn; return None if there is no query, no scope or no search.

    Args:
        turn: the turn.
        parts: the parts of memory that are read.
        embedding: the query of the request, or None; see `_embed_given_query`.
        until: time of the event loop at which the caller stops waiting.
    """
    owner, request, settings, _, memory, search = turn
    if search is None or not turn.scopes:
        return None
    query = await embedding
    if query is None:
        results: list[str] = []
        if request.task_id is not None:
            task = request.task_id, TASK_RESULTS, request.min_seq
            results = (await memory.load_task_results(owner, *task)).value
        said = decide.find_last_user_message(parts.messages.value.messages) if parts.messages else None
        text = build_query(request.query, said, results)
        if text is None:
            return None
        query = await _embed_query(turn, search, text)
    retrieval, shown = settings.retrieval, settings.context
    listed = sum(fact.tier != "archive" for fact in parts.facts.value) if parts.facts else 0
    # Other sections may show some of the hits, so the limit is raised by their number.
    limit = max(retrieval.limit + listed, shown.conversation_hits + _count_repeated_hits(turn, parts))
    return await search.find_hits(
        query,
        turn.scopes,
        limit,
        retrieval.threshold,
        retrieval,
        request.min_seq,
        until=until,
    )


def _count_repeated_hits(turn: ContextTurn, parts: ContextParts) -> int:
    """Return the number of hits that `recent` may show already; the search returns that many more hits."""
    rows = parts.messages.value.messages if parts.messages else ()
    summaries = parts.summaries.value if parts.summaries else ()
    due = decide.select_due_messages(rows, summaries, turn.settings.recent_messages)
    return max(turn.settings.recent_messages, min(len(due), MOST_REPEATED))


def _build_reply(
    turn: ContextTurn, parts: ContextParts, result: SearchResult | None, missing: Missing
) -> ContextReplyV1:
    request, settings = turn.request, turn.settings
    degraded = _list_degraded_parts(turn, result, missing)
    known = decide.ContextSources(
        view=parts.messages.value if parts.messages else None,
        counted=parts.counted,
        profile=parts.profile.value if parts.profile else {},
        facts=parts.facts.value if parts.facts else (),
        summaries=parts.summaries.value if parts.summaries else (),
        hits=result.hits if result else (),
        # Without the reranker, hits have another order, and none is missing.
        incomplete=any(part != "reranker" for part in degraded),
    )
    context = decide.build_context(known, settings, turn.now)
    layouts = TYPED_LAYOUTS if settings.context.fact_types else LAYOUTS_BY_LANGUAGE
    fitted = fit_context(
        context,
        layouts[context.language][request.format],
        request.budget or settings.context.budget,
        settings.context.sections,
        tokens.count_tokens,
        tokens.cut_text,
        settings.context.characters,
    )
    seen = [
        part.seq for part in (parts.messages, parts.profile, parts.facts, parts.summaries) if part is not None
    ]
    if result is not None and not set(turn.scopes).issubset(result.degraded):
        seen.append(result.seq)
    return ContextReplyV1.model_construct(
        seen_seq=min(seen),
        conversation=parts.messages.value.conversation if parts.messages else request.conversation,
        messages=fitted.rendered.messages,
        text=fitted.rendered.text,
        tokens=fitted.tokens,
        sections=dict(fitted.sections.items()),
        coverage=fitted.coverage,
        profile=dict(known.profile),
        degraded=degraded,
        metadata={FROM_MEMORY: True},
    )


def _list_degraded_parts(turn: ContextTurn, result: SearchResult | None, missing: Missing) -> tuple[str, ...]:
    unsearched = turn.scopes if turn.search is None else result.degraded if result else ()
    named = {*missing, *(SEARCHED.get(scope, scope) for scope in unsearched)}
    return tuple(sorted(named, key=(*SECTIONS, "embedding", "reranker").index))
