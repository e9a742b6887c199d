"""`document`: list, add and remove documents, which can be searched."""

from collections.abc import Coroutine, Sequence
from hashlib import sha256
from typing import Any

from mnemon_consumers.retrieve.memory.memory import Memory
from mnemon_consumers.retrieve.verbs.request_context import (
    await_reply,
    identify_event,
    report_unconfirmed_addition,
)
from mnemon_consumers.retrieve.verbs.user_log import UserLog
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.events.memory import DocumentAddedV1, DocumentRemovedV1
from mnemon_contracts.subjects import Address
from mnemon_contracts.verbs.ask import Reply
from mnemon_contracts.verbs.tools import DocumentInfo, DocumentReplyV1, DocumentV1
from mnemon_infra.broker.service import Refusal
from mnemon_infra.database.memory.documents import DocumentEntry
from mnemon_infra.settings.store import LiveSettings


class DocumentVerb:
    """Answers `document`: lists, adds and removes the user's documents."""

    def __init__(self, memory: Memory, log: UserLog, settings: LiveSettings) -> None:
        self._memory = memory
        self._log = log
        self._settings = settings

    def document(self, address: Address, body: bytes) -> Coroutine[Any, Any, Reply]:
        request = DocumentV1.parse(body or b"{}")
        match request.action:
            case "list":
                return await_reply(self._list_documents(address, request, request.min_seq))
            case "add":
                return await_reply(self._add_document(address, request))
            case "remove":
                return await_reply(self._remove_document(address, request))

    async def _list_documents(
        self, address: Address, request: DocumentV1, min_seq: int | None, document_id: str | None = None
    ) -> Reply:
        if request.limit == 0 and document_id is not None:
            return DocumentReplyV1.model_construct(seen_seq=min_seq or 0, document_id=document_id)
        seen = await self._memory.load_documents(address.owner, min_seq)
        entries = [
            entry
            for entry in seen.value
            if request.collection in (None, entry.collection) and entry.id > (request.after or "")
        ]
        documents = _build_page(entries[: request.limit], self._log.reply_limit)
        return DocumentReplyV1.model_construct(
            seen_seq=seen.seq,
            documents=documents,
            document_id=document_id,
            next=documents[-1].document_id if documents and len(documents) < len(entries) else None,
        )

    async def _add_document(self, address: Address, request: DocumentV1) -> Reply:
        if not (request.text and request.text.strip()):
            raise InvalidBody("text", "the text is missing or blank; send the whole text of the document")
        limit = self._settings.get_settings(address.tenant).documents.characters
        if len(request.text) > limit:
            raise InvalidBody(
                "text",
                f"the document has {len(request.text):,} characters, and the limit is {limit:,} (setting "
                "`documents.characters`); split the document",
            )
        event_id = identify_event(address)
        event = DocumentAddedV1(
            document_id=request.document_id or event_id,
            text=request.text,
            title=request.title,
            source=request.source,
            collection=request.collection,
            origin=request.origin,
            digest=sha256(request.text.encode()).hexdigest(),
        )
        with report_unconfirmed_addition("document", request.document_id, event.document_id):
            position = await self._log.publish_event(address, event, event_id)
            return await self._list_documents(address, request, position, event.document_id)

    async def _remove_document(self, address: Address, request: DocumentV1) -> Reply:
        if request.document_id is None:
            raise InvalidBody("document_id", "the field is missing; give the id of the document to remove")
        seen = await self._memory.load_documents(address.owner, await self._log.read_end())
        if all(entry.id != request.document_id for entry in seen.value):
            raise Refusal(
                "not_found",
                f"there is no document {request.document_id!r}; list the documents with `document`",
            )
        position = await self._log.publish_event(address, DocumentRemovedV1(document_id=request.document_id))
        return await self._list_documents(address, request, position, request.document_id)


def _build_page(entries: Sequence[DocumentEntry], most_bytes: int) -> tuple[DocumentInfo, ...]:
    """Return the first documents, as many as a reply has room for, and at least one."""
    page: list[DocumentInfo] = []
    room = most_bytes
    for entry in entries:
        shown = DocumentInfo.model_construct(
            document_id=entry.id,
            title=entry.title,
            source=entry.source,
            collection=entry.collection,
            origin=entry.origin,
            digest=entry.digest,
        )
        room -= len(shown.serialize()) + 1  # a comma
        if page and room < 0:
            break
        page.append(shown)
    return tuple(page)
