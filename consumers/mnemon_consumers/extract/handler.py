"""Handler of `extract`: reads a conversation for facts once it is idle or has enough new messages."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import nats.errors
import structlog

from mnemon_consumers.extract.pipeline import ExtractionPipeline
from mnemon_consumers.extract.windowing import CHECK_PAUSE
from mnemon_consumers.model_reports import answer_report_requests
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.subjects import (
    InvalidSubject,
    Owner,
    parse_conversation,
    parse_message_trigger,
    parse_owner,
)
from mnemon_infra.broker.broker import Broker
from mnemon_infra.broker.outcomes import ACK, Dead, DeliveryOutcome, Retry
from mnemon_infra.broker.streams.schedules import schedule_every
from mnemon_infra.broker.streams.triggers import decode_given_up_window, decode_users
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, DatabaseUnavailable
from mnemon_infra.database.windows.window_repository import StoredWindow
from mnemon_infra.delivery import Delivery
from mnemon_infra.durables import BATCHES, DURABLES
from mnemon_infra.models.language.registry import LanguageModels
from mnemon_infra.settings.store import LiveSettings

log = structlog.get_logger("extract")

TRANSIENT = DatabaseUnavailable, nats.errors.Error
TICK = f"{BATCHES}.tick"

SOON = Retry(1)
"""Retry after 1 s: a user is not done, see `ExtractionPipeline.read_due_messages`, or a server failed."""


class ExtractConsumer:
    """Consumer that reads conversations for facts, in batches or with online requests.

    The consumer has its own database connections, because it holds them while it waits for models.
    """

    def __init__(self, models: LanguageModels, deployment: Deployment) -> None:
        self._extract_seconds = deployment.extract_seconds
        self._database = Database(deployment, name="mnemon-extract-models")
        self._settings = LiveSettings()
        self._pipeline = ExtractionPipeline(self._database, self._settings, models, deployment)
        self.broker = Broker(deployment, "extract")
        self.broker.subscribe_durable(DURABLES["extract-said"], self.schedule_reading)
        self.broker.subscribe_durable(DURABLES["extract"], self.read_conversations)
        self.broker.subscribe_durable(DURABLES["extract-batches"], self.advance_batches)

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Read conversations for facts until the block ends.

        Raises:
            DatabaseUnavailable: the database does not answer, or has not been migrated.
            mnemon_infra.settings.bucket.SettingsNotProvisioned: the bucket of settings does not exist.
            nats.errors.Error: NATS does not answer.
        """
        async with (
            self._database,
            self.broker.connect() as connection,
            self._settings.watch_bucket(connection),
            answer_report_requests(connection, self._pipeline.circuit_breaker),
            self.broker.run(),
        ):
            await schedule_every(connection, "schedule.batches", self._extract_seconds, TICK)
            yield

    async def schedule_reading(self, deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        """Schedule the reading of users' new messages; return an outcome for each delivery."""
        triggers = [_decode_speakers(each) for each in deliveries]
        users: dict[Owner, int] = {}
        for trigger in triggers:
            if not isinstance(trigger, Dead):
                users.update({owner: max(seq, users.get(owner, 0)) for owner, seq in trigger.items()})
        undone = set(users)
        try:
            undone = await self._pipeline.schedule_reading(self.broker.connection, users)
        except TRANSIENT as error:
            log.warning("extract scan failed, retrying", error=repr(error))
        return [
            trigger
            if isinstance(trigger, Dead)
            else ACK
            if undone.isdisjoint(trigger)
            else Retry(CHECK_PAUSE)
            for trigger in triggers
        ]

    async def read_conversations(self, deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        """Read the due messages of users; return an outcome for each delivery."""
        owners = [_parse_trigger_owner(each) for each in deliveries]
        users = list(dict.fromkeys(each for each in owners if not isinstance(each, Dead)))
        undone = set(users)
        try:
            undone = await self._pipeline.read_due_messages(self.broker.connection, users)
        except TRANSIENT as error:
            log.warning("extraction failed, retrying", error=repr(error))
        return [each if isinstance(each, Dead) else SOON if each in undone else ACK for each in owners]

    async def advance_batches(self, deliveries: Sequence[Delivery]) -> Sequence[DeliveryOutcome]:
        """Reopen the windows that the deliveries name, then do the periodic work of `extract`.

        Returns:
            An outcome for each delivery.
        """
        windows = [_decode_window(each) for each in deliveries]
        try:
            await self._pipeline.reopen_windows([each for each in windows if isinstance(each, StoredWindow)])
            await self._pipeline.run_tick(self.broker.connection)
        except TRANSIENT as error:
            log.warning("periodic extract work failed, retrying", error=repr(error))
            return [Retry() if isinstance(each, StoredWindow) else each or ACK for each in windows]
        return [each if isinstance(each, Dead) else ACK for each in windows]


def _decode_speakers(delivery: Delivery) -> dict[Owner, int] | Dead:
    """Return the users who sent messages, each with the log position of the newest message of the trigger.

    Returns:
        `Dead` if the trigger is invalid.
    """
    try:
        return dict.fromkeys(decode_users(delivery.body), parse_message_trigger(delivery.subject))
    except (InvalidSubject, InvalidBody) as error:
        return Dead("invalid_trigger", str(error))


def _decode_window(delivery: Delivery) -> StoredWindow | Dead | None:
    """Return the window to reopen.

    Returns:
        None for a tick, the periodic trigger; a tick needs no retry, because the next tick follows. `Dead`
        for an invalid trigger.
    """
    if delivery.subject == TICK:
        return None
    try:
        window = decode_given_up_window(delivery.body)
        tenant, user, _ = parse_conversation(delivery.subject.rpartition(".")[0])
        place = window.conversation, window.from_seq, window.to_seq
        return StoredWindow(tenant, user, *place, attempts=window.attempts + 1)
    except (InvalidSubject, InvalidBody) as error:
        return Dead("invalid_trigger", str(error))


def _parse_trigger_owner(delivery: Delivery) -> Owner | Dead:
    try:
        return parse_owner(delivery.subject)
    except InvalidSubject as error:
        return Dead("invalid_trigger", str(error))
