"""Makes what is said and kept searchable, batch by batch; then has the users' vectors looked through."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import structlog
from nats.aio.client import Client
from pydantic import JsonValue

from consumers.index import texts
from consumers.index.chunks import chunks
from consumers.index.decide import Plan, Read, Said, plan
from consumers.index.sweep import sweep
from contracts.identity import point_id
from contracts.streams import LOG, WORK
from contracts.subjects import InvalidSubject, parse_owner, work_subject
from infra.broker.delivery import Delivery
from infra.broker.lifetime import build_broker, connected, started
from infra.broker.outcomes import ACK, Dead, Outcome, Retry
from infra.broker.stream_consumers import consume_stream
from infra.config import Deployment
from infra.database.engine import Database, DatabaseUnavailable
from infra.finding import Findable, Finding, points
from infra.models.embedding import EmbeddingUnavailable
from infra.precedence import give_way
from infra.vectors.port import Collection, VectorsUnavailable

log = structlog.get_logger("index")


@asynccontextmanager
async def consuming(database: Database, finding: Finding, deployment: Deployment) -> AsyncIterator[None]:
    """Index the log as long as the block lasts."""
    broker = build_broker(deployment, "index")

    async def index(deliveries: Sequence[Delivery]) -> Sequence[Outcome]:
        batch = plan(deliveries)
        try:
            await write(batch)
        except (EmbeddingUnavailable, VectorsUnavailable) as error:
            log.warning("not indexed yet, will be tried again", events=len(deliveries), error=str(error))
            return [Retry() if outcome is ACK else outcome for outcome in batch.outcomes]
        publish = broker.config.connection_state.stream.publish
        for owner, seq in batch.sweeps.items():
            await publish(work_subject("index", *owner), str(seq).encode(), stream=WORK)
        return batch.outcomes

    async def write(batch: Plan) -> None:
        said = [message(each) for each in batch.messages]
        read = [chunk for each in batch.documents for chunk in document(each)]
        await finding.vectors.upsert(Collection.MESSAGES, await points(finding, said))
        await finding.vectors.upsert(Collection.DOCUMENTS, await points(finding, read))

    async def sweep_users(deliveries: Sequence[Delivery]) -> Sequence[Outcome]:
        connection = broker.config.connection_state.connection
        return [await sweep_user(connection, delivery) for delivery in deliveries]

    async def sweep_user(connection: Client, delivery: Delivery) -> Outcome:
        await give_way()
        try:
            owner = parse_owner(delivery.subject)
            done = await sweep(connection, database, finding, owner, int(delivery.body or b"0"))
        except (InvalidSubject, ValueError) as error:
            return Dead("invalid_trigger", str(error))
        except (DatabaseUnavailable, EmbeddingUnavailable, VectorsUnavailable):
            return Retry()
        return ACK if done else Retry(0.2)

    consume_stream(
        broker,
        stream=LOG,
        durable="index",
        batch=deployment.index_batch,
        linger=deployment.index_linger_ms / 1000,
        overlap=deployment.index_writers,
        consume=index,
        dead_limit=deployment.dead_limit,
    )
    consume_stream(
        broker,
        stream=WORK,
        durable="index-sweep",
        batch=20,
        linger=0.1,
        overlap=1,
        consume=sweep_users,
        dead_limit=deployment.dead_limit,
    )
    async with connected(broker), started(broker, (LOG, "index"), (WORK, "index-sweep")):
        yield


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
