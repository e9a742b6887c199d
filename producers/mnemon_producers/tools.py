"""The memory tools: facts, the user's data, tasks and documents, asked for and changed."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import JsonValue

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.events.memory import Origin
from mnemon_contracts.registry import VERBS
from mnemon_contracts.verbs.ask import ProfileReplyV1, ProfileV1, Reply
from mnemon_contracts.verbs.function_tools import TOOLS
from mnemon_contracts.verbs.tools import (
    DocumentInfo,
    DocumentReplyV1,
    DocumentV1,
    TasksReplyV1,
    TasksV1,
)
from mnemon_producers.facts import FactTools


class MemoryTools(FactTools):
    """What a bot, or the model it asks, does with a user's memory; each raises `AskFailed` without a result.

    The error's `code` says what it was: `not_found`, `refused`, `unavailable` and so on. A change is in every
    answer to a question that carries the `seen_seq` of its reply as `min_seq`.
    """

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
            user, function.verb, request, contract.replies[-1], version=contract.version_of(request)
        )

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
        """All of the user's documents without their texts, by id; of one collection or of all."""
        documents: list[DocumentInfo] = []
        after: str | None = None
        while True:
            request = DocumentV1.strictly(action="list", collection=collection, min_seq=min_seq, after=after)
            page = await self._questioner.ask(user, "document", request, DocumentReplyV1)
            documents += page.documents
            after = page.next
            if after is None:
                return page.model_copy(update={"documents": tuple(documents)})

    async def add_document(
        self,
        user: str,
        text: str,
        *,
        document_id: str | None = None,
        title: str | None = None,
        source: str | None = None,
        collection: str | None = None,
        origin: Origin | None = None,
        limit: int | None = None,
    ) -> DocumentReplyV1:
        """Make a text searchable, in the scope `documents`.

        Args:
            user: whose document.
            text: the whole text; it is cut into pieces that are found by themselves.
            document_id: such as a path; the same again is a new version. None makes one.
            title: how it is called.
            source: where it is from: a path or an address.
            collection: what it belongs to, such as a repository.
            origin: the kind of folder that the document is a file of: `folder` or `repository`.
            limit: at most so many documents in the reply, 0 to 1000; None is 1000.

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
            origin=origin,
            **({} if limit is None else {"limit": limit}),
        )
        return await self._questioner.ask(user, "document", request, DocumentReplyV1)

    async def remove_document(
        self, user: str, document_id: str, *, limit: int | None = None
    ) -> DocumentReplyV1:
        """Remove a document; it is found no more. Returns those that are left, `limit` at most."""
        request = DocumentV1.strictly(
            action="remove", document_id=document_id, **({} if limit is None else {"limit": limit})
        )
        return await self._questioner.ask(user, "document", request, DocumentReplyV1)
