"""Usage of models by the proxy: publishes the tokens of each answer as the event `model.called`."""

from uuid import uuid4

import structlog
from cachetools import TTLCache
from nats.aio.client import Client
from nats.errors import Error as BrokerError

from mnemon.gateway.proxy.answers import Answer
from mnemon_consumers.domain.spending.calls import build_call_event
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.settings.language_models import Spending
from mnemon_contracts.subjects import Owner
from mnemon_infra.broker.streams.log_writer import append_events, retry_store
from mnemon_infra.models.language.port import Usage
from mnemon_infra.settings.bucket import SettingsNotProvisioned
from mnemon_infra.settings.store import read_settings

log = structlog.get_logger("proxy")

PRICE_SECONDS = 60.0
"""Seconds for which the prices of a tenant are cached."""

PAUSE = 1.0
"""Seconds between two attempts to publish."""


class UsageRecorder:
    """Recorder that publishes an event `model.called` for each answer."""

    def __init__(self, connection: Client) -> None:
        self._connection = connection
        self._prices: TTLCache[str, Spending] = TTLCache(4096, PRICE_SECONDS)

    async def record(self, owner: Owner, provider: str, answer: Answer) -> None:
        """Publish the event of an answer. If the provider reported no tokens, the event has zeros.

        An error of the event or of the server is logged, not raised.
        """
        counted = answer.tokens
        usage = Usage.from_counts(counted.input, counted.cached, counted.output) if counted else Usage()
        try:
            event = build_call_event(
                owner,
                usage,
                provider,
                answer.model or "unknown",
                "chat",
                None,
                await self._read_spending(owner[0]),
                f"chat-{uuid4().hex}",
            )

            async def publish_event() -> None:
                await append_events(self._connection, [event])

            await retry_store(publish_event, PAUSE)
        except (InvalidBody, BrokerError) as error:
            log.warning("tokens of a chat not counted", tenant=owner[0], error=type(error).__name__)

    async def _read_spending(self, tenant: str) -> Spending:
        """Return the prices of a tenant; no prices if the settings cannot be read."""
        known = self._prices.get(tenant)
        if known is None:
            try:
                known = (await read_settings(self._connection, tenant)).spending
            except (BrokerError, SettingsNotProvisioned):
                return Spending()
            self._prices[tenant] = known
        return known
