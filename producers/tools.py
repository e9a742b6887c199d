"""The memory tools: facts, the user's data, tasks and documents, asked for and changed."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from pydantic import JsonValue

from contracts.ask import ProfileReplyV1, ProfileV1, Reply
from contracts.base import InvalidBody
from contracts.function_tools import TOOLS
from contracts.memory import Kind, Tier
from contracts.registry import VERBS
from contracts.tools import (
    DocumentReplyV1,
    DocumentV1,
    FactReplyV1,
    FactsReplyV1,
    ForgetReplyV1,
    ForgetV1,
    GetV1,
    Importance,
    ReadV1,
    SaveReplyV1,
    SaveV1,
    Scope,
    SearchReplyV1,
    SearchV1,
    TasksReplyV1,
    TasksV1,
    UpdateV1,
)
from producers.asking import Questioner

_FACTS: Final[tuple[Scope, ...]] = ("memories",)


class MemoryTools:
    """What a bot, or the model it asks, does with a user's memory; each raises `AskFailed` without a result.

    The error's `code` says what it was: `not_found`, `refused`, `unavailable` and so on. A change is in every
    answer to a question that carries the `seen_seq` of its reply as `min_seq`.
    """

    def __init__(self, questioner: Questioner) -> None:
        self._questioner = questioner

    async def call(
        self, user: str, tool: str, arguments: Mapping[str, Any], *, min_seq: int | None = None
    ) -> Reply:
        """Do what a model asks for by a function call; `mnemon tools` prints the functions.

            for call in answer.tool_calls:
                reply = await memory.call("u42", call.function.name, json.loads(call.function.arguments))
                result = reply.model_dump_json(exclude_none=True)

        Args:
            user: whose memory.
            tool: the name of the function, such as `memory_save`.
            arguments: as the model gave them.
            min_seq: what is looked for is to reflect the log up to here, such as the `seen_seq` of the last
                change; of no effect where the function changes something.

        Raises:
            InvalidBody: there is no such function, or an argument is unknown, missing or wrong.
        """
        function = TOOLS.get(tool)
        if function is None:
            raise InvalidBody("tool", f"{tool!r} is not one of {', '.join(TOOLS)}")
        contract = VERBS[function.verb]
        request = function.asked(arguments)
        if min_seq is not None and not function.changes:
            request = request.model_copy(update={"min_seq": min_seq})
        return await self._questioner.ask(
            user, function.verb, request, contract.replies[-1], version=len(contract.requests)
        )

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
        """Keep a fact, and learn what became of it.

            reply = await memory.save("u42", "Prefers trains to planes", importance="high")
            reply.decision, reply.id     # "saved", "pf_007": or "updated", "confirmed", "rejected"

        Args:
            user: whose fact.
            text: the fact, one sentence that stands by itself.
            kind: what sort of fact; None lets it be classified.
            tier: `profile` is always shown to the model, `working` until its date, `archive` when it is
                found; None lets it be classified.
            importance: 1 to 10, or `high`, `normal`, `low`.
            expires_at: from then on it is not shown, and is removed.

        Returns:
            What was decided: with the `id` of the fact that was saved, or that said it before; or with the
            `reason` why it was refused, such as a secret in it.

        Raises:
            AskFailed: nothing is known; with the code `unavailable` it may still be decided. To save the same
                again is harmless.
        """
        request = SaveV1.strictly(
            text=text, kind=kind, tier=tier, importance=importance, expires_at=expires_at
        )
        return await self._questioner.ask(user, "save", request, SaveReplyV1)

    async def read(
        self, user: str, *, tier: Tier | None = None, limit: int = 100, min_seq: int | None = None
    ) -> FactsReplyV1:
        """All facts that have not expired, by tier: profile, working, archive.

        Args:
            user: whose facts.
            tier: only this one.
            limit: at most so many; in each tier the most important first.
            min_seq: reflect the log up to here: what a publish or a change returned.
        """
        request = ReadV1.strictly(tier=tier, limit=limit, min_seq=min_seq)
        return await self._questioner.ask(user, "read", request, FactsReplyV1)

    async def search(
        self,
        user: str,
        query: str,
        *,
        limit: int | None = None,
        threshold: float | None = None,
        scope: Iterable[Scope] = _FACTS,
        explain: bool = False,
        min_seq: int | None = None,
        as_of: datetime | int | None = None,
    ) -> SearchReplyV1:
        """What is relevant to a query, best first.

            found = await memory.search("u42", "train or plane?", scope=["memories", "messages"])

        Args:
            user: whose memory.
            query: what to look for, in any language.
            limit: at most so many hits; None is what the settings say.
            threshold: leave out hits that score below it, 0 to 1; None is what the settings say.
            scope: where to look: `memories` (facts), `messages`, `documents`.
            explain: give the parts of each score.
            min_seq: reflect the log up to here.
            as_of: as it was then: a time, UTC unless it has an offset, or a log position.

        Returns:
            The hits; `degraded` names the scopes that could not be searched.
        """
        asked = {"limit": limit, "threshold": threshold, "min_seq": min_seq, "as_of": as_of}
        request = SearchV1.strictly(
            query=query,
            scope=tuple(scope),
            explain=explain,
            **{name: value for name, value in asked.items() if value is not None},
        )
        return await self._questioner.ask(user, "search", request, SearchReplyV1)

    async def get(self, user: str, id: str, *, min_seq: int | None = None) -> FactReplyV1:  # noqa: A002
        """One fact by its short id, such as `pf_007`, with its former versions, newest first."""
        request = GetV1.strictly(id=id, min_seq=min_seq)
        return await self._questioner.ask(user, "get", request, FactReplyV1)

    async def update(
        self,
        user: str,
        id: str,  # noqa: A002
        *,
        text: str | None = None,
        kind: Kind | None = None,
        tier: Tier | None = None,
        importance: int | Importance | None = None,
        expires_at: datetime | None = None,
    ) -> FactReplyV1:
        """Change a fact; what is left out stays, and what it was is kept as a former version.

        Returns:
            The fact as it is from now on.

        Raises:
            AskFailed: there is no such fact (`not_found`); or such a text is not kept, another fact says the
                same, or the tier is full (`refused`).
        """
        request = UpdateV1.strictly(
            id=id, text=text, kind=kind, tier=tier, importance=importance, expires_at=expires_at
        )
        return await self._questioner.ask(user, "update", request, FactReplyV1)

    async def forget(
        self,
        user: str,
        id: str | None = None,  # noqa: A002
        *,
        query: str | None = None,
    ) -> ForgetReplyV1:
        """Remove one fact: by its id, or the first that a query finds. Returns the id of the removed one.

        It is in no answer from then on, and its text in no store; the log of events keeps it.
        """
        request = ForgetV1.strictly(id=id, query=query)
        return await self._questioner.ask(user, "forget", request, ForgetReplyV1)

    async def profile(self, user: str, *, min_seq: int | None = None) -> ProfileReplyV1:
        """The user's data, field by field.

        Raises:
            AskFailed: there is no result.
        """
        request = ProfileV1.strictly(min_seq=min_seq)
        return await self._questioner.ask(user, "profile", request, ProfileReplyV1)

    async def set_profile(self, user: str, fields: Mapping[str, JsonValue]) -> ProfileReplyV1:
        """Set fields of the user's data, of any names; None removes one. Other fields stay.

        Returns:
            The data as it is from now on.

        Raises:
            AskFailed: there is no result; the fields may be set or not, and setting them again is harmless.
        """
        request = ProfileV1.strictly(fields=dict(fields))
        return await self._questioner.ask(user, "profile", request, ProfileReplyV1)

    async def tasks(self, user: str, *, min_seq: int | None = None) -> TasksReplyV1:
        """The user's tasks, oldest first, those that are done among them. No context has them by itself."""
        request = TasksV1.strictly(action="list", min_seq=min_seq)
        return await self._questioner.ask(user, "tasks", request, TasksReplyV1)

    async def add_task(
        self, user: str, text: str, *, due_at: datetime | None = None, task_id: str | None = None
    ) -> TasksReplyV1:
        """Note a task. Returns all tasks, and as `task_id` the id of the new one, made unless it is given."""
        request = TasksV1.strictly(action="add", text=text, due_at=due_at, task_id=task_id)
        return await self._questioner.ask(user, "tasks", request, TasksReplyV1)

    async def finish_task(self, user: str, task_id: str) -> TasksReplyV1:
        """Mark a task as done; doing it again is harmless. Returns all tasks."""
        request = TasksV1.strictly(action="done", task_id=task_id)
        return await self._questioner.ask(user, "tasks", request, TasksReplyV1)

    async def remove_task(self, user: str, task_id: str) -> TasksReplyV1:
        """Take a task off the list. Returns those that are left."""
        request = TasksV1.strictly(action="remove", task_id=task_id)
        return await self._questioner.ask(user, "tasks", request, TasksReplyV1)

    async def documents(
        self, user: str, *, collection: str | None = None, min_seq: int | None = None
    ) -> DocumentReplyV1:
        """The user's documents without their texts, by id; of one collection or of all."""
        request = DocumentV1.strictly(action="list", collection=collection, min_seq=min_seq)
        return await self._questioner.ask(user, "document", request, DocumentReplyV1)

    async def add_document(
        self,
        user: str,
        text: str,
        *,
        document_id: str | None = None,
        title: str | None = None,
        source: str | None = None,
        collection: str | None = None,
    ) -> DocumentReplyV1:
        """Make a text searchable, in the scope `documents`.

        Args:
            user: whose document.
            text: the whole text; it is cut into pieces that are found by themselves.
            document_id: such as a path; the same again is a new version. None makes one.
            title: how it is called.
            source: where it is from: a path or an address.
            collection: what it belongs to, such as a repository.

        Returns:
            The documents of the collection, or all without one; `document_id` is the one that was added.
        """
        request = DocumentV1.strictly(
            action="add",
            document_id=document_id,
            title=title,
            text=text,
            source=source,
            collection=collection,
        )
        return await self._questioner.ask(user, "document", request, DocumentReplyV1)

    async def remove_document(self, user: str, document_id: str) -> DocumentReplyV1:
        """Remove a document; it is found no more. Returns those that are left."""
        request = DocumentV1.strictly(action="remove", document_id=document_id)
        return await self._questioner.ask(user, "document", request, DocumentReplyV1)
