"""Client of the verbs about facts: save, read, search, get, update and forget."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.events.memory import Kind, Origin, Tier
from mnemon_contracts.registry import VERBS
from mnemon_contracts.verbs.tools import (
    FactsReplyV1,
    ForgetReplyV1,
    ForgetV1,
    FoundScope,
    GetReplyV1,
    GetV2,
    Importance,
    ReadV1,
    SaveReplyV1,
    SaveV1,
    Scope,
    SearchReplyV2,
    SearchScope,
    SearchV2,
    UpdateReplyV2,
    UpdateV2,
)
from mnemon_producers.requests import Questioner

_DOCUMENTS: Final[tuple[Scope, ...]] = ("documents",)

_PAGE: Final = 500
"""Number of facts per page of `read_all`. A page fits into a NATS message of 1 MiB if its facts take up to
2,000 bytes on average."""


class FactTools:
    """Methods for the verbs about facts. Each method raises `AskFailed` if its request gets no result."""

    def __init__(self, questioner: Questioner) -> None:
        self._questioner = questioner

    async def save(
        self,
        user: str,
        text: str,
        *,
        kind: Kind | None = None,
        tier: Tier | None = None,
        importance: int | Importance | None = None,
        expires_at: datetime | None = None,
    ) -> SaveReplyV1:
        """Propose a fact, and return the decision on it.

            reply = await memory.save("u42", "Prefers trains to planes", importance="high")
            reply.decision, reply.id     # "saved" (or "updated", "confirmed", "rejected"), "pf_007"

        Args:
            user: the user whose fact it is.
            text: the fact, one sentence that is clear on its own.
            kind: the kind of the fact; None derives the kind from the text.
            tier: `profile` is for every context, `working` for every context until `expires_at`, `archive`
                for contexts whose query finds the fact. None derives the tier: `working` if `expires_at` is
                given, or if the text names an end or a passing state and nothing lasting, such as an allergy;
                otherwise from the kind and the text.
            importance: a number from 1 to 10, or `high`, `normal` or `low`; None derives it from the text.
            expires_at: the time from which the fact is not shown; then the fact is removed. None gives a
                working fact the end that its text names, else that of the setting `limits.working_days`.

        Returns:
            The decision, with the `id` of the saved or updated fact, or of the known fact that says the same.
            A rejection has a `reason`, such as a secret in the text, and the `rule`; if a known fact caused
            the rejection, also the `id` of that fact.

        Raises:
            AskFailed: no decision is known. With the code `unavailable` or `timeout`, the fact may still be
                decided on. Saving the same fact again is harmless.
        """
        request = SaveV1.create_strict(
            text=text, kind=kind, tier=tier, importance=importance, expires_at=expires_at
        )
        return await self._questioner.ask(user, "save", request, SaveReplyV1)

    async def read(
        self,
        user: str,
        *,
        tier: Tier | None = None,
        limit: int = 100,
        min_seq: int | None = None,
        after: str | None = None,
    ) -> FactsReplyV1:
        """Read a page of the facts that have not expired, by tier: profile, working, archive.

        Args:
            user: the user whose facts they are.
            tier: read only facts of this tier. Default: all tiers.
            limit: the maximum number of facts; in each tier the most important facts come first.
            min_seq: reflect the log up to this position, which a publish or a change returned.
            after: `next` of the previous page. Default: the first page.

        Returns:
            The facts; `total` counts the facts of all pages, and `next` is set if more pages follow.
        """
        request = ReadV1.create_strict(tier=tier, limit=limit, min_seq=min_seq, after=after)
        return await self._questioner.ask(user, "read", request, FactsReplyV1)

    async def read_all(
        self, user: str, *, tier: Tier | None = None, min_seq: int | None = None
    ) -> FactsReplyV1:
        """Read all facts that have not expired, in pages of 500; arguments as for `read`.

        A fact that changes between two pages may be missing.
        """
        page = await self.read(user, tier=tier, limit=_PAGE, min_seq=min_seq)
        facts = {fact.id: fact for fact in page.facts}
        while page.next is not None:
            page = await self.read(user, tier=tier, limit=_PAGE, min_seq=min_seq, after=page.next)
            facts |= {fact.id: fact for fact in page.facts}
        return page.model_copy(update={"facts": tuple(facts.values()), "total": len(facts)})

    async def search(
        self,
        user: str,
        query: str,
        *,
        limit: int | None = None,
        threshold: float | None = None,
        scope: Iterable[SearchScope] | None = None,
        explain: bool = False,
        min_seq: int | None = None,
        as_of: datetime | int | None = None,
        collection: str | None = None,
        origin: Origin | None = None,
        conversation: str | None = None,
        preceding: Iterable[str] = (),
        now: datetime | None = None,
    ) -> SearchReplyV2:
        """Search facts, or the scopes of `scope`, best hit first.

            found = await memory.search("u42", "train or plane?", scope=["memories", "messages"])
            found = await memory.search("u42", "what did we settle?", scope=["medium"])
            found = await memory.search("u42", "and when was that?", preceding=["Anna moved to Rome"])

        Args:
            user: the user whose memory it is.
            query: a question, a sentence or words to search for, in any language.
            limit: the maximum number of hits. Default: the tenant's setting.
            threshold: minimum score of a hit, 0 to 1. Default: the tenant's setting.
            scope: scopes to search: `memories` (facts), `messages`, `documents`, `summaries`; or a level of
                memory: `short` (the newest messages of the conversation), `medium` (summaries and working
                facts), `long` (other facts, other messages, documents). None means facts, or
                documents if `collection` or `origin` is given.
            explain: return for each hit the components of its score, in `parts`.
            min_seq: reflect the log up to this position.
            as_of: search as of this former time, UTC unless it has an offset, or log position.
            collection: search only documents of this collection, such as a repository.
            origin: search only files of indexed folders of this kind: `folder` or `repository`.
            conversation: the conversation whose newest messages `short` finds and `long` leaves out; None
                means the current conversation.
            preceding: the last messages before the query, oldest first, at most four. A query that depends
                on them, such as `and when was that?`, is searched with their words too.
            now: the time to which words of the query such as `yesterday` are relative, UTC unless it has an
                offset. Default: the time of the request, or that of `as_of`.

        Returns:
            The hits; `degraded` names the scopes that could not be searched, and `embedding` or `reranker` if
            this part of the search failed.
        """
        asked = {
            "limit": limit,
            "threshold": threshold,
            "min_seq": min_seq,
            "as_of": as_of,
            "collection": collection,
            "origin": origin,
            "scope": scope if scope is not None else _DOCUMENTS if collection or origin else None,
            "conversation": conversation,
            "preceding": preceding or None,
            "now": now,
        }
        request = SearchV2.create_strict(
            query=query,
            explain=explain,
            **{name: value for name, value in asked.items() if value is not None},
        )
        version = VERBS["search"].find_oldest_version(request)
        return await self._questioner.ask(user, "search", request, SearchReplyV2, version=version)

    async def get(
        self,
        user: str,
        id: str,  # noqa: A002
        *,
        scope: FoundScope | None = None,
        offset: int = 0,
        min_seq: int | None = None,
    ) -> GetReplyV1:
        """Get one whole fact, message, document or summary by its id, such as `pf_007` or the id of a hit.

            hit = (await memory.search("u42", "train or plane?", scope=["messages"])).hits[0]
            whole = await memory.get("u42", hit.id, scope=hit.scope)

        Args:
            user: the user whose memory it is.
            id: the id of the fact, message, document or summary.
            scope: the scope of the id; None means the first scope that has the id.
            offset: the first character of a document to return: `next_offset` of the previous reply.
            min_seq: reflect the log up to this position.

        Returns:
            A `fact` with its former `versions`, at most 99, newest first; or a `message`, a `document` or a
            `summary`.
        """
        request = GetV2.create_strict(id=id, min_seq=min_seq, scope=scope, offset=offset)
        version = VERBS["get"].find_oldest_version(request)
        return await self._questioner.ask(user, "get", request, GetReplyV1, version=version)

    async def update(
        self,
        user: str,
        id: str | None = None,  # noqa: A002
        *,
        query: str | None = None,
        text: str | None = None,
        kind: Kind | None = None,
        tier: Tier | None = None,
        importance: int | Importance | None = None,
        expires_at: datetime | None = None,
    ) -> UpdateReplyV2:
        """Change a fact, by its id or by a query that clearly means one fact.

        Omitted arguments do not change the fact, except that a new text or tier may change `expires_at`.
        The former content is kept as a former version.

        Args:
            user: the user whose fact it is.
            id: the id of the fact, such as `pf_007`. Without an id, give `query`.
            query: words that clearly mean one fact.
            text: the fact, one sentence.
            kind: the kind of the fact.
            tier: `profile`, `working` or `archive`.
            importance: a number from 1 to 10, or `high`, `normal` or `low`.
            expires_at: the time from which the fact is not shown; then the fact is removed.

        Returns:
            The `fact` with its new content, and its former `versions`, at most 99, newest first. If the query
            does not clearly mean one fact, the reply has no `fact` but at most five `candidates`, best first:
            change one of them by its id.

        Raises:
            AskFailed: no fact has the id, or the query means no fact (`not_found`); or the policy rejects the
                text, another fact says the same, or the tier is full (`refused`); or both or none of `id` and
                `query` are given, or `expires_at` is in the past (`bad_request`).
        """
        changes: dict[str, Any] = {
            "text": text,
            "kind": kind,
            "tier": tier,
            "importance": importance,
            "expires_at": expires_at,
        }
        request = UpdateV2.create_strict(id=id, query=query, **changes)
        version = VERBS["update"].find_oldest_version(request)
        return await self._questioner.ask(user, "update", request, UpdateReplyV2, version=version)

    async def forget(
        self,
        user: str,
        id: str | None = None,  # noqa: A002
        *,
        query: str | None = None,
    ) -> ForgetReplyV1:
        """Remove one fact: by its id, or by a query that clearly means one fact.

            reply = await memory.forget("u42", query="the cello")
            if reply.id is None:                          # nothing was removed
                [(each.id, each.text) for each in reply.candidates]

        From then on, no reply contains a removed fact, except with an earlier `as_of`. The log, snapshots and
        backups keep its text.

        Args:
            user: the user whose fact it is.
            id: the id of the fact, such as `pf_007`. Without an id, give `query`.
            query: words that clearly mean one fact.

        Returns:
            The `id` and `text` of the removed fact, and `restore`, unless the fact had expired: pass the
            reply to `restore` to save the fact again. If the query does not clearly mean one fact, the reply
            has no `id` but at most five `candidates`, best first: forget one of them by its id.

        Raises:
            AskFailed: no fact has the id, or the query means no fact (`not_found`); or both or none of `id`
                and `query` are given (`bad_request`).
        """
        request = ForgetV1.create_strict(id=id, query=query)
        return await self._questioner.ask(user, "forget", request, ForgetReplyV1)

    async def restore(self, user: str, forgotten: ForgetReplyV1) -> SaveReplyV1:
        """Save a removed fact again, from the reply of `forget`; `dedupe` decides as on any `save`.

        Returns:
            The decision; if the fact is saved, it has a new `id` and no former versions.

        Raises:
            InvalidBody: the reply has no `restore`: no fact was removed, or the fact had expired.
            AskFailed: no decision is known, as for `save`.
        """
        if forgotten.restore is None:
            raise InvalidBody(
                "restore",
                "no fact was removed, so there is none to restore; give a reply to `forget` that has an `id`"
                if forgotten.id is None
                else f"the fact {forgotten.id} had expired; save its text again with `save` and a later "
                "`expires_at`",
            )
        return await self._questioner.ask(user, "save", forgotten.restore, SaveReplyV1)
