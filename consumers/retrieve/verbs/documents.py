"""`document`: texts to be searched."""

from collections.abc import Coroutine, Mapping
from typing import Any
from uuid import uuid4

from consumers.retrieve.memory import Memory
from consumers.retrieve.verbs.asking import available, owner_of
from consumers.retrieve.verbs.user_log import UserLog
from contracts.ask import Reply
from contracts.base import InvalidBody
from contracts.memory import DocumentAddedV1, DocumentRemovedV1
from contracts.subjects import Address
from contracts.tools import DocumentInfo, DocumentReplyV1, DocumentV1
from infra.broker.service import Answer, Refusal


class DocumentVerb:
    """The user's documents: listed, added or removed."""

    def __init__(self, memory: Memory, log: UserLog) -> None:
        self._memory = memory
        self._log = log

    @property
    def answers(self) -> Mapping[str, Answer]:
        return {"document": self.document}

    def document(self, address: Address, body: bytes) -> Coroutine[Any, Any, Reply]:
        request = DocumentV1.read(body or b"{}")
        match request.action:
            case "list":
                return available(self._list(address, request.collection, request.min_seq))
            case "add":
                return available(self._add(address, request))
            case "remove":
                return available(self._remove(address, request))

    async def _list(
        self, address: Address, collection: str | None, min_seq: int | None, document_id: str | None = None
    ) -> Reply:
        seen = await self._memory.documents(owner_of(address), min_seq)
        documents = tuple(
            DocumentInfo.model_construct(
                document_id=entry.id, title=entry.title, source=entry.source, collection=entry.collection
            )
            for entry in seen.value
            if collection in (None, entry.collection)
        )
        return DocumentReplyV1.model_construct(
            seen_seq=seen.seq, documents=documents, document_id=document_id
        )

    async def _add(self, address: Address, request: DocumentV1) -> Reply:
        if not (request.text and request.text.strip()):
            raise InvalidBody("text", "the text of the document, whole; it has no word")
        event = DocumentAddedV1(
            document_id=request.document_id or str(uuid4()),
            text=request.text,
            title=request.title,
            source=request.source,
            collection=request.collection,
        )
        position = await self._log.publish(address, event)
        return await self._list(address, request.collection, position, event.document_id)

    async def _remove(self, address: Address, request: DocumentV1) -> Reply:
        if request.document_id is None:
            raise InvalidBody("document_id", "which document?")
        seen = await self._memory.documents(owner_of(address), await self._log.end())
        if all(entry.id != request.document_id for entry in seen.value):
            raise Refusal("not_found", f"there is no document {request.document_id!r}")
        position = await self._log.publish(address, DocumentRemovedV1(document_id=request.document_id))
        return await self._list(address, request.collection, position, request.document_id)
