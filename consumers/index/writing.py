"""Writes the points of what is said and kept."""

from pydantic import JsonValue

from consumers.index import texts
from consumers.index.chunks import chunks
from consumers.index.decide import Plan, Read, Said
from contracts.identity import point_id
from infra.finding import Findable, Finding, points
from infra.vectors.port import Collection


async def write(finding: Finding, batch: Plan) -> None:
    """Make a batch searchable.

    Raises:
        EmbeddingUnavailable, VectorsUnavailable: part of it may be; all of it can be written again.
    """
    said = [message(each) for each in batch.messages]
    read = [chunk for each in batch.documents for chunk in document(each)]
    await finding.vectors.upsert(Collection.MESSAGES, await points(finding, said))
    await finding.vectors.upsert(Collection.DOCUMENTS, await points(finding, read))


def message(said: Said) -> Findable:
    """A message to be found."""
    words, meaning = texts.message(said.content, said.name, said.sent_at)
    payload: dict[str, JsonValue] = {"event_id": said.event_id, "seq": said.seq}
    return Findable(point_id(*said.owner, "message", said.event_id), said.owner, payload, words, meaning)


def document(read: Read) -> list[Findable]:
    """The chunks of a document to be found."""
    whole = read.document
    return [
        Findable(
            point_id(*read.owner, "chunk", whole.document_id, str(number)),
            read.owner,
            {
                "document_id": whole.document_id,
                "event_id": read.event_id,
                "chunk": number,
                "start": chunk.start,
                "end": chunk.end,
                "collection": whole.collection,
            },
            *texts.chunk(chunk.text, whole.title),
        )
        for number, chunk in enumerate(chunks(whole.text, whole.source))
    ]
