"""Has conversations read for facts, when they rest or have grown long: in batches, or one by one."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import nats.errors
import structlog

from consumers.extract.cutting import SELDOM
from consumers.extract.working import Extraction
from contracts.base import InvalidBody
from contracts.streams import WORK
from contracts.subjects import InvalidSubject, parse_owner, said_position
from infra.broker.delivery import Delivery
from infra.broker.lifetime import build_broker, connected, started
from infra.broker.outcomes import ACK, Dead, Outcome, Retry
from infra.broker.scheduling import every
from infra.broker.stream_consumers import consume_stream
from infra.broker.topology import BATCHES
from infra.broker.triggers import decode
from infra.config import Deployment
from infra.database.engine import Database, DatabaseUnavailable
from infra.database.rows import Owner
from infra.models.language.opening import LanguageModels
from infra.settings.store import LiveSettings

log = structlog.get_logger("extract")

LATER = DatabaseUnavailable, nats.errors.Error
SOON = Retry(1)
"""Others are at it, or the projections are behind."""


@asynccontextmanager
async def consuming(models: LanguageModels, deployment: Deployment) -> AsyncIterator[None]:
    """Read conversations for facts as long as the block lasts.

    Its connections to the database are its own: they are held while models think.

    Raises:
        DatabaseUnavailable: the database does not answer.
        infra.settings.store.SettingsNotProvisioned: the streams and buckets are not there.
    """
    broker = build_broker(deployment, "extract")
    settings = LiveSettings()
    database = Database(deployment, name="mnemon-extract-models")
    extraction = Extraction(database, settings, models, deployment)

    async def said(deliveries: Sequence[Delivery]) -> Sequence[Outcome]:
        triggers = [_said(each) for each in deliveries]
        users: dict[Owner, int] = {}
        for trigger in triggers:
            if not isinstance(trigger, Dead):
                users.update({owner: max(seq, users.get(owner, 0)) for owner, seq in trigger.items()})
        later = set(users)
        try:
            later = await extraction.said(broker.config.connection_state.connection, users)
        except LATER as error:
            log.warning("nobody is looked at yet, will be tried again", error=repr(error))
        return [
            trigger if isinstance(trigger, Dead) else ACK if later.isdisjoint(trigger) else Retry(SELDOM)
            for trigger in triggers
        ]

    async def read(deliveries: Sequence[Delivery]) -> Sequence[Outcome]:
        owners = [_owner(each) for each in deliveries]
        users = list(dict.fromkeys(each for each in owners if not isinstance(each, Dead)))
        left = set(users)
        try:
            left = await extraction.read(broker.config.connection_state.connection, users)
        except LATER as error:
            log.warning("not read yet, will be tried again", error=repr(error))
        return [each if isinstance(each, Dead) else SOON if each in left else ACK for each in owners]

    async def tick(deliveries: Sequence[Delivery]) -> Sequence[Outcome]:
        try:
            await extraction.tick(broker.config.connection_state.connection)
        except LATER as error:
            log.warning("batches are not looked after, the next round will", error=repr(error))
        # Another one comes by itself.
        return [ACK] * len(deliveries)

    at_once = deployment.model_requests
    consume_stream(
        broker,
        stream=WORK,
        durable="extract-said",
        batch=100,
        linger=0.5,
        overlap=1,
        consume=said,
        dead_limit=deployment.dead_limit,
    )
    consume_stream(
        broker,
        stream=WORK,
        durable="extract",
        batch=at_once,
        linger=0.05,
        overlap=2,
        consume=read,
        dead_limit=deployment.dead_limit,
    )
    consume_stream(
        broker,
        stream=WORK,
        durable="extract-batches",
        batch=10,
        linger=0.05,
        overlap=1,
        consume=tick,
        dead_limit=deployment.dead_limit,
    )
    try:
        await database.open()
        async with (
            connected(broker) as connection,
            settings.watched(connection),
            started(broker, (WORK, "extract-said"), (WORK, "extract"), (WORK, "extract-batches")),
        ):
            await every(connection, "schedule.batches", deployment.extract_seconds, f"{BATCHES}.tick")
            yield
    finally:
        await database.close()


def _said(delivery: Delivery) -> dict[Owner, int] | Dead:
    """Who said something, and up to which log position."""
    try:
        return dict.fromkeys(decode(delivery.body), said_position(delivery.subject))
    except (InvalidSubject, InvalidBody) as error:
        return Dead("invalid_trigger", str(error))


def _owner(delivery: Delivery) -> Owner | Dead:
    try:
        return parse_owner(delivery.subject)
    except InvalidSubject as error:
        return Dead("invalid_trigger", str(error))
