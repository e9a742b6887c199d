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
from mnemon_contracts.subjects import InvalidSubject, Owner, parse_owner, parse_subject
from mnemon_infra.broker.broker import Broker
from mnemon_infra.broker.outcomes import ACK, Ack, Dead, DeliveryOutcome, Retry
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, DatabaseUnavailable
from mnemon_infra.delivery import Delivery
from mnemon_infra.durables import DURABLES
from mnemon_infra.models.embedding import EmbeddingUnavailable
from mnemon_infra.settings.store import LiveSettings
from mnemon_infra.vectors.port import VectorsUnavailable
from mnemon_infra.vectors.vector_index import VectorIndex

log = structlog.get_logger("dedupe")

POISON = Ack("persist stores a dead letter for the event")
MOVED = Ack("the tenant has moved to another deployment, or a move has copied the event")
TRANSIENT = DatabaseUnavailable, EmbeddingUnavailable, VectorsUnavailable, nats.errors.Error


class DedupeConsumer:
    """Consumer that decides on proposals and comparisons, and ends excess and discarded facts."""

    def __init__(self, database: Database, vector_index: VectorIndex, deployment: Deployment) -> None:
        self._settings = LiveSettings()
        self._processor = ProposalProcessor(database, vector_index, self._settings)
        self._slots = asyncio.Semaphore(deployment.dedupe_users)
        self._turns = Turns(self._decide_for_user, self._processor.has_decided)
        self.broker = Broker(deployment, "dedupe")
        self.broker.subscribe_durable(DURABLES["dedupe"], self.decide_proposals)
        self.broker.subscribe_durable(DURABLES["dedupe-limits"], self.enforce_limits)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Decide on proposals and comparisons, and end excess and discarded facts, until the block ends.

        Raises:
            mnemon_infra.settings.bucket.SettingsNotProvisioned: the bucket of settings does not exist.
            nats.errors.Error: NATS does not answer.
        """
        await asyncio.to_thread(load_lexicon)  # loading takes a second
        async with (
            self.broker.connect() as connection,
            self._settings.watch_bucket(connection),
            self._turns.open(),
            self.broker.run(),
        ):
            yield

    async def decide_proposals(self, deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        """Run a turn of each user with deliveries, and put off deliveries that the turn leaves undecided.

        While a tenant moves, its proposals wait. A move that succeeds proposes the undecided facts again in
        the other deployment, which acknowledges the copies of the waiting proposals without a decision. After
        an abandoned move, this deployment decides the waiting proposals.

        Returns:
            An outcome for each delivery.
        """
        outcomes: dict[int, DeliveryOutcome] = {}
        users: defaultdict[Owner, list[int]] = defaultdict(list)
        for each in deliveries:
            owner = _parse_event_owner(each)
            if owner is None:
                outcomes[each.sequence] = POISON
            elif each.is_moved or self._settings.is_suspended(owner[0]):
                outcomes[each.sequence] = self._choose_moving_outcome(owner[0], each)
            else:
                users[owner].append(each.sequence)
        taken = await asyncio.gather(*(self._turns.run_turn(*each) for each in users.items()))
        for (owner, positions), waits in zip(users.items(), taken, strict=True):
            for position in positions:
                outcomes[position] = self._turns.choose_outcome(owner, waits, position)
        return [outcomes[each.sequence] for each in deliveries]

    def _choose_moving_outcome(self, tenant: str, delivery: Delivery) -> DeliveryOutcome:
        """Return the outcome of a delivery that is not handled, because its tenant moves or has moved."""
        return MOVED if delivery.is_moved or self._settings.has_moved(tenant) else Retry()

    async def enforce_limits(self, deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        """Evict the facts by which users exceed their limits, and forget facts of discarded messages.

        Returns:
            An outcome for each delivery.
        """
        return await asyncio.gather(*(self._enforce_user_limits(each) for each in deliveries))

    async def _enforce_user_limits(self, delivery: Delivery) -> DeliveryOutcome:
        try:
            owner = parse_owner(delivery.subject)
        except InvalidSubject as error:
            return Dead("invalid_trigger", str(error))
        if self._settings.is_suspended(owner[0]):
            return self._choose_moving_outcome(owner[0], delivery)
        waits = await self._decide_for_user(owner, datetime.fromtimestamp(delivery.stored_at, UTC))
        return ACK if waits is None else Retry()

    async def _decide_for_user(self, owner: Owner, limits_at: datetime | None = None) -> int | None:
        # The semaphore admits the user who waited longest, so after a turn a user waits behind all others.
        async with self._slots:
            # A user's further turns do not pass through `decide_proposals`, which checks this too.
            if self._settings.is_suspended(owner[0]):
                return FAILED
            try:
                return await self._processor.decide(self.broker.connection, owner, limits_at=limits_at)
            except TRANSIENT as error:
                log.warning("deduplication failed, retrying", tenant=owner[0], error=repr(error))
            except Exception:
                # The error concerns this user only; the other users of the batch continue.
                log.exception("deduplication crashed, retrying", tenant=owner[0])
            return FAILED


def _parse_event_owner(delivery: Delivery) -> Owner | None:
    try:
        address = parse_subject(delivery.subject)
    except InvalidSubject:
        return None
    return address.owner
