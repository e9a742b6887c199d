"""Has conversations read for facts when they rest or have grown long, in batches or one by one."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import nats.errors
import structlog

from mnemon_consumers.extract.pipeline import ExtractionPipeline
from mnemon_consumers.extract.windowing import CHECK_PAUSE
from mnemon_consumers.model_reports import report_models
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.streams import WORK
from mnemon_contracts.subjects import InvalidSubject, Owner, parse_conversation, parse_owner, said_position
from mnemon_infra.broker.lifetime import build_broker, connected, started
from mnemon_infra.broker.outcomes import ACK, Dead, DeliveryOutcome, Retry
from mnemon_infra.broker.provisioning.topology import BATCHES
from mnemon_infra.broker.streams.schedules import every
from mnemon_infra.broker.streams.triggers import decode, decode_given_up
from mnemon_infra.broker.subscriptions import consume_stream
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, DatabaseUnavailable
from mnemon_infra.database.windows.window_repository import StoredWindow
from mnemon_infra.delivery import Delivery
from mnemon_infra.models.language.registry import LanguageModels
from mnemon_infra.settings.store import LiveSettings

log = structlog.get_logger("extract")

LATER = DatabaseUnavailable, nats.errors.Error
TICK = f"{BATCHES}.tick"

SOON = Retry(1)
"""Another process handles the user, or the projections are behind."""


@asynccontextmanager
async def consuming(models: LanguageModels, deployment: Deployment) -> AsyncIterator[None]:
    """Read conversations for facts until the block ends.

    The consumer has database connections of its own, because they are held while models think.

    Raises:
        DatabaseUnavailable: the database does not answer.
        mnemon_infra.settings.store.SettingsNotProvisioned: the streams and buckets do not exist.
    """
    broker = build_broker(deployment, "extract")
    settings = LiveSettings()
    database = Database(deployment, name="mnemon-extract-models")
    extraction = ExtractionPipeline(database, settings, models, deployment)

    async def said(deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        triggers = [_said(each) for each in deliveries]
        users: dict[Owner, int] = {}
        for trigger in triggers:
            if not isinstance(trigger, Dead):
                users.update({owner: max(seq, users.get(owner, 0)) for owner, seq in trigger.items()})
        later = set(users)
        try:
            later = await extraction.said(broker.config.connection_state.connection, users)
        except LATER as error:
            log.warning("extract scan failed, retrying", error=repr(error))
        return [
            trigger if isinstance(trigger, Dead) else ACK if later.isdisjoint(trigger) else Retry(CHECK_PAUSE)
            for trigger in triggers
        ]

    async def read(deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        owners = [_owner(each) for each in deliveries]
        users = list(dict.fromkeys(each for each in owners if not isinstance(each, Dead)))
        left = set(users)
        try:
            left = await extraction.read(broker.config.connection_state.connection, users)
        except LATER as error:
            log.warning("extraction failed, retrying", error=repr(error))
        return [each if isinstance(each, Dead) else SOON if each in left else ACK for each in owners]

    async def tick(deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        given_up = [_given_up(each) for each in deliveries]
        try:
            await extraction.reopen([each for each in given_up if isinstance(each, StoredWindow)])
            await extraction.tick(broker.config.connection_state.connection)
        except LATER as error:
            log.warning("batch scan failed, retrying", error=repr(error))
            return [Retry() if isinstance(each, StoredWindow) else each or ACK for each in given_up]
        return [each if isinstance(each, Dead) else ACK for each in given_up]

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
            report_models(connection, extraction.patience),
            started(broker, (WORK, "extract-said"), (WORK, "extract"), (WORK, "extract-batches")),
        ):
            await every(connection, "schedule.batches", deployment.extract_seconds, TICK)
            yield
    finally:
        await database.close()


def _said(delivery: Delivery) -> dict[Owner, int] | Dead:
    """Return the users who sent messages, each with the log position up to which they did."""
    try:
        return dict.fromkeys(decode(delivery.body), said_position(delivery.subject))
    except (InvalidSubject, InvalidBody) as error:
        return Dead("invalid_trigger", str(error))


def _given_up(delivery: Delivery) -> StoredWindow | Dead | None:
    """Return the window to reopen; None for a tick, which needs no retry because the next one follows."""
    if delivery.subject == TICK:
        return None
    try:
        window = decode_given_up(delivery.body)
        tenant, user, _ = parse_conversation(delivery.subject.rpartition(".")[0])
        place = window.conversation, window.from_seq, window.to_seq
        return StoredWindow(tenant, user, *place, attempts=window.attempts + 1)
    except (InvalidSubject, InvalidBody) as error:
        return Dead("invalid_trigger", str(error))


def _owner(delivery: Delivery) -> Owner | Dead:
    try:
        return parse_owner(delivery.subject)
    except InvalidSubject as error:
        return Dead("invalid_trigger", str(error))
