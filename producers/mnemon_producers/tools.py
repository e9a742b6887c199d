"""The memory tools of bots and models: facts, the user's data, tasks and documents."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import JsonValue

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.events.memory import Origin
from mnemon_contracts.function_tools import TOOLS
from mnemon_contracts.registry import VERBS
from mnemon_contracts.verbs.ask import ProfileReplyV1, ProfileV1, Reply
from mnemon_contracts.verbs.tools import (
    DocumentInfo,
    DocumentReplyV1,
    DocumentV1,
    TasksReplyV1,
    TasksV1,
)
from mnemon_producers.facts import FactTools


class MemoryTools(FactTools):
    """Methods for the verbs with which a bot, or its model, reads and changes a user's memory.

    Each method raises `AskFailed` if its request gets no result; the error's `code` gives the cause:
    `not_found`, `refused`, `unavailable` and so on. The reply to a change has a `seen_seq`; a request with
    this position as `min_seq` waits for the change, for a limited time.
    """

    async def call(
        self, user: str, tool: str, arguments: Mapping[str, Any], *, min_seq: int | None = None
    ) -> Reply:
        """Run a function call of a model; `mnemon tools` prints the functions.

            for call in answer.tool_calls:
                reply = await memory.call("u42", call.function.name, json.loads(call.function.arguments))
                result = reply.model_dump_json(exclude_none=True)

        Args:
            user: the user whose memory it is.
            tool: the name of the function, such as `memory_save`.
            arguments: the arguments that the model gave.
            min_seq: for a function that reads: reflect the log up to this position, such as the `seen_seq` of
                the last change. A function that changes memory ignores it.

        Raises:
            InvalidBody: no function has this name, an argument is unknown, missing or wrong, or the arguments
                are not an object.
        """
        function = TOOLS.get(tool)
        if function is None:
            raise InvalidBody("tool", f"{tool!r} is not a tool; use one of {', '.join(TOOLS)}")
        contract = VERBS[function.verb]
        request = function.build_request(arguments)
        if min_seq is not None and not function.changes:
            request = request.model_copy(update={"min_seq": min_seq})
        return await self._questioner.ask(
            user, function.verb, request, contract.replies[-1], version=contract.find_oldest_version(request)
        )

    async def profile(self, user: str, *, min_seq: int | None = None) -> ProfileReplyV1:
        """Return the user's data, field by field."""
        request = ProfileV1.create_strict(min_seq=min_seq)
        return await self._questioner.ask(user, "profile", request, ProfileReplyV1)

    async def set_profile(self, user: str, fields: Mapping[str, JsonValue]) -> ProfileReplyV1:
        """Set fields of the user's data, of any names; None removes a field. Other fields do not change.

        Returns:
            The data after the change.

        Raises:
            InvalidBody: `fields` is not a mapping, or a value cannot be stored.
            AskFailed: the request got no result. The fields may be set or not; setting them again is
                harmless.
        """
        if not isinstance(fields, Mapping):  # a request without `fields` would only read
            problem = f"must be a mapping, not {type(fields).__name__}; give names with values"
            raise InvalidBody("fields", problem)
        request = ProfileV1.create_strict(fields=fields)
        return await self._questioner.ask(user, "profile", request, ProfileReplyV1)

    async def tasks(self, user: str, *, min_seq: int | None = None) -> TasksReplyV1:
        """Return all tasks of the user, including done tasks, oldest first. No context includes tasks."""
        request = TasksV1.create_strict(action="list", min_seq=min_seq)
        return await self._questioner.ask(user, "tasks", request, TasksReplyV1)

    async def add_task(
        self, user: str, text: str, *, due_at: datetime | None = None, task_id: str | None = None
    ) -> TasksReplyV1:
        """Add a task, with a new id unless `task_id` is given. Return all tasks and the id as `task_id`.

        After a timeout, a repeated call without `task_id` may add a second task.
        """
        request = TasksV1.create_strict(action="add", text=text, due_at=due_at, task_id=task_id)
        return await self._questioner.ask(user, "tasks", request, TasksReplyV1)

    async def finish_task(self, user: str, task_id: str) -> TasksReplyV1:
        """Mark a task as done; a repeated call is harmless. Return all tasks."""
        request = TasksV1.create_strict(action="done", task_id=task_id)
        return await self._questioner.ask(user, "tasks", request, TasksReplyV1)

    async def remove_task(self, user: str, task_id: str) -> TasksReplyV1:
        """Remove a task from the list. Return the remaining tasks."""
        request = TasksV1.create_strict(action="remove", task_id=task_id)
        return await self._questioner.ask(user, "tasks", request, TasksReplyV1)

    async def documents(
        self, user: str, *, collection: str | None = None, min_seq: int | None = None
    ) -> DocumentReplyV1:
        """Return the user's documents without their texts, in the order of their ids.

        Without `collection`, return all documents, also those of no collection.
        """
        documents: list[DocumentInfo] = []
        after: str | None = None
        while True:
            request = DocumentV1.create_strict(
                action="list", collection=collection, min_seq=min_seq, after=after
            )
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
            user: the user whose document it is.
            text: the whole text. The text is cut into chunks, and a search finds each chunk separately.
            document_id: an id such as a path; the text replaces that of a document with the same id. None
                creates an id; then a repeated call after a timeout may add a second document.
            title: the title.
            source: the path or the address of the text.
            collection: the name of the document's collection, for example that of a repository.
            origin: the kind of folder that the document is a file of: `folder` or `repository`.
            limit: the maximum number of documents in the reply, 0 to 1000. Default: 1000.

        Returns:
            At most `limit` documents, only those of `collection` if it is given; `document_id` is the id of
            the new document.
        """
        request = DocumentV1.create_strict(
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
        """Remove a document from all searches; return at most `limit` of the remaining documents.

        `limit` is 0 to 1000; None means 1000.
        """
        request = DocumentV1.create_strict(
            action="remove", document_id=document_id, **({} if limit is None else {"limit": limit})
        )
        return await self._questioner.ask(user, "document", request, DocumentReplyV1)
