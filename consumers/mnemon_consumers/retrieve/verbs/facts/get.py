"""`get`: return a fact, message, document or summary by the id that a search returned.

A long document is returned in parts.
"""

from collections.abc import Coroutine, Mapping
from typing import Any, Final

from mnemon_consumers.retrieve.decide import select_unexpired_facts
from mnemon_consumers.retrieve.memory.memory import Memory
from mnemon_consumers.retrieve.verbs.facts.view import build_fact_reply
from mnemon_consumers.retrieve.verbs.request_context import await_reply, get_current_time
from mnemon_contracts.subjects import Address, Owner
from mnemon_contracts.verbs.ask import Reply
from mnemon_contracts.verbs.tools import (
    ConversationMessage,
    DocumentText,
    FoundScope,
    GetReplyV1,
    GetV1,
    GetV2,
    SummaryText,
)
from mnemon_infra.broker.service import Refusal
from mnemon_infra.database.memory.documents import StoredDocument
from mnemon_infra.database.messages.lookup import MessageLookup, VisibleMessage

LONGEST_TEXT: Final = 100_000
"""Maximum number of characters of a document in one reply: escaped in JSON, the text fits in a NATS
message.
"""

_NAMED: Final[Mapping[FoundScope | None, str]] = {
    "memories": "fact",
    "messages": "message",
    "documents": "document",
    "summaries": "summary",
    None: "fact, message, document or summary",
}

_NEXT_STEPS: Final[Mapping[FoundScope | None, str]] = {
    "memories": "list the facts with `read`",
    "messages": "list the messages with `history`",
    "documents": "list the documents with `document`",
    "summaries": "find the summary with `search`",
    None: "find the id with `search`",
}


class GetVerb:
    """Answers `get`: a whole fact, message or summary, or up to `LONGEST_TEXT` characters of a document."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    def get(self, address: Address, body: bytes) -> Coroutine[Any, Any, Reply]:
        request = GetV1.parse(body) if address.version == 1 else GetV2.parse(body)
        return await_reply(self._find_item(address.owner, request))

    async def _find_item(self, owner: Owner, request: GetV2) -> Reply:
        readers = {
            "memories": self._get_fact,
            "messages": self._get_message,
            "documents": self._get_document,
            "summaries": self._get_summary,
        }
        for scope, read in readers.items():
            if request.scope in (None, scope) and (reply := await read(owner, request)):
                return reply
        raise Refusal(
            "not_found",
            f"there is no {_NAMED[request.scope]} {request.id!r}; {_NEXT_STEPS[request.scope]}",
        )

    async def _get_fact(self, owner: Owner, request: GetV2) -> Reply | None:
        seen = await self._memory.load_fact_history(owner, request.id, request.min_seq)
        if seen.value is None or not select_unexpired_facts([seen.value.fact], get_current_time()):
            return None
        return GetReplyV1.model_construct(
            seen_seq=seen.seq, fact=build_fact_reply(seen.value.fact), versions=tuple(seen.value.versions)
        )

    async def _get_message(self, owner: Owner, request: GetV2) -> Reply | None:
        seen = await self._memory.load_surroundings(
            owner, MessageLookup(*owner, (request.id,)), request.min_seq
        )
        for message in seen.value.messages.values():
            return GetReplyV1.model_construct(seen_seq=seen.seq, message=_build_message(message))
        return None

    async def _get_summary(self, owner: Owner, request: GetV2) -> Reply | None:
        seen = await self._memory.load_summaries_by_id(owner, (request.id,), request.min_seq)
        for summary in seen.value:
            whole = SummaryText.model_construct(
                **{name: getattr(summary, name) for name in SummaryText.model_fields}
            )
            return GetReplyV1.model_construct(seen_seq=seen.seq, summary=whole)
        return None

    async def _get_document(self, owner: Owner, request: GetV2) -> Reply | None:
        seen = await self._memory.load_documents_by_id(owner, (request.id,), request.min_seq)
        for document in seen.value:
            return GetReplyV1.model_construct(
                seen_seq=seen.seq, document=_build_document(document, request.offset)
            )
        return None


def _build_message(message: VisibleMessage) -> ConversationMessage:
    return ConversationMessage.model_construct(
        id=message.event_id,
        seq=message.seq,
        role=message.role,
        content=message.content,
        name=message.name,
        sent_at=message.sent_at,
        conversation=message.conversation,
    )


def _build_document(document: StoredDocument, offset: int) -> DocumentText:
    end = offset + LONGEST_TEXT
    return DocumentText.model_construct(
        document_id=document.id,
        title=document.title,
        source=document.source,
        collection=document.collection,
        origin=document.origin,
        digest=document.digest,
        text=document.text[offset:end],
        offset=offset,
        length=len(document.text),
        next_offset=end if end < len(document.text) else None,
    )
