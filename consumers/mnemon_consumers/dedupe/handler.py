"""Handler of `dedupe`: starts decisions on each user's proposals and comparisons as they arrive."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import nats.errors
import structlog

from mnemon_consumers.dedupe.processor import ProposalProcessor
from mnemon_consumers.dedupe.turns import FAILED, Turns
from mnemon_consumers.domain.alignment.lexicon import load_lexicon
from mnemon_contracts.streams import LOG, WORK
from mnemon_contracts.subjects import InvalidSubject, Owner, parse, parse_owner
from mnemon_infra.broker.lifetime import build_broker, connected, started
from mnemon_infra.broker.outcomes import ACK, Ack, Dead, DeliveryOutcome, Retry
from mnemon_infra.broker.subscriptions import consume_stream
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, DatabaseUnavailable
from mnemon_infra.delivery import Delivery
from mnemon_infra.models.embedding import EmbeddingUnavailable
from mnemon_infra.settings.store import LiveSettings
from mnemon_infra.vectors.port import VectorsUnavailable
from mnemon_infra.vectors.vector_index import VectorIndex

log = structlog.get_logger("dedupe")

POISON = Ack("persist makes a dead letter of it")
LATER = DatabaseUnavailable, EmbeddingUnavailable, VectorsUnavailable, nats.errors.Error


@asynccontextmanager
async def consuming(database: Database, finding: VectorIndex, deployment: Deployment) -> AsyncIterator[None]:
    """Decide on proposals and comparisons for the duration of the block."""
    broker = build_broker(deployment, "dedupe")
    settings = LiveSettings()
    deciding = ProposalProcessor(database, finding, settings)
    room = asyncio.Semaphore(deployment.dedupe_users)

    async def decide(owner: Owner, limits_at: datetime | None = None) -> int | None:
        # The semaphore admits the longest waiting user first, so a user is behind all others after a turn.
        async with room:
            try:
                connection = broker.config.connection_state.connection
                return await deciding.decide(connection, owner, limits_at=limits_at)
            except LATER as error:
                log.warning("deduplication failed, retrying", error=repr(error))
            except Exception:
                # The error concerns this user only; the other users of the batch continue.
                log.exception("deduplication crashed, retrying", tenant=owner[0])
            return FAILED

    turns = Turns(decide, deciding.has_decided)

    async def propose(deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        owners = [_owner(each) for each in deliveries]
        users: defaultdict[Owner, list[int]] = defaultdict(list)
        for owner, each in zip(owners, deliveries, strict=True):
            if owner:
                users[owner].append(each.sequence)
        taken = await asyncio.gather(*(turns.take(*each) for each in users.items()))
        waits = dict(zip(users, taken, strict=True))
        return [
            turns.end(owner, waits[owner], each.sequence) if owner else POISON
            for owner, each in zip(owners, deliveries, strict=True)
        ]

    async def limit(deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        return await asyncio.gather(*(limit_user(each) for each in deliveries))

    async def limit_user(delivery: Delivery) -> DeliveryOutcome:
        try:
            owner = parse_owner(delivery.subject)
        except InvalidSubject as error:
            return Dead("invalid_trigger", str(error))
        waits = await decide(owner, datetime.fromtimestamp(delivery.stored_at, UTC))
        return ACK if waits is None else Retry()

    consume_stream(
        broker,
        stream=LOG,
        durable="dedupe",
        batch=500,
        linger=0.01,
        overlap=2,
        consume=propose,
        dead_limit=deployment.dead_limit,
    )
    consume_stream(
        broker,
        stream=WORK,
        durable="dedupe-limits",
        batch=20,
        linger=1,
        overlap=1,
        consume=limit,
        dead_limit=deployment.dead_limit,
    )
    await asyncio.to_thread(load_lexicon)  # loading takes a second
    async with (
        connected(broker) as connection,
        settings.watched(connection),
        turns.open(),
        started(broker, (LOG, "dedupe"), (WORK, "dedupe-limits")),
    ):
        yield


def _owner(delivery: Delivery) -> Owner | None:
    try:
        address = parse(delivery.subject)
    except InvalidSubject:
        return None
    return address.tenant, address.user
