"""Circuit breaker for language models: pauses a model that refuses or does not answer.

Requests wait during the pause, and none is lost.
"""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

import structlog

from mnemon_contracts.settings.language_models import Provider
from mnemon_infra.models.language.port import (
    LanguageModel,
    ModelNotConfigured,
    ModelRefused,
    ModelUnavailable,
)
from mnemon_infra.models.language.registry import LanguageModels

log = structlog.get_logger("models")

REFUSAL_PAUSE: Final = 60.0
"""Seconds of pause after a refusal.

The pause is short enough for an operator who corrects a key, and long enough to limit the number of log
messages.
"""

PAUSES: Final = (0.0, 2.0, 5.0, 15.0, 60.0)
"""Minimum pause in seconds after a failure that is no refusal, by the number of consecutive failures.

The last value applies to all further failures. The first failure alone causes no pause unless the provider
requests one: the request may be the cause, and other requests need not wait.
"""

LONGEST_PAUSE: Final = 300.0
"""Maximum pause in seconds, even if the provider requests a longer one."""

REPORTED_FOR: Final = 600.0
"""Seconds after the pause for which a model without further requests is reported as failing.

A model that gets no request for longer is taken for a model that no settings name any more.
"""

_Key = tuple[Provider, str | None]


class FailingModel(NamedTuple):
    """A model whose last request failed, or that cannot be opened.

    Attributes:
        model: the provider's name of the model, if known.
        setting: the name of the model in the settings; None for the provider's default.
        error: the reason for the last failure, without key or content.
        is_refused: True if the model cannot answer before the cause is corrected; False if it may recover.
        since: the time of the first failure since the last answer, or since `is_refused` changed.
    """

    provider: str
    model: str | None
    setting: str | None
    error: str
    is_refused: bool
    since: datetime


class CircuitBreaker:
    """Circuit breaker that opens the models of a process, and pauses models that fail.

    Its methods identify a model by provider and name; the name None stands for the provider's default model.
    """

    def __init__(self, models: LanguageModels) -> None:
        self._models = models
        self._until: dict[_Key, float] = {}
        self._failed: dict[_Key, int] = {}
        self._usual: dict[_Key, _Key] = {}
        self._failing: dict[_Key, FailingModel] = {}

    @property
    def failing(self) -> Sequence[FailingModel]:
        """Models whose last request failed, or that cannot be opened.

        A model is in the list until `REPORTED_FOR` seconds after the end of its pause.
        """
        now = time.monotonic()
        return [each for key, each in self._failing.items() if now - self._until.get(key, now) < REPORTED_FOR]

    def measure_pause(self, provider: Provider, name: str | None) -> float:
        """Return the seconds until the pause of a model ends; 0 if the model may be called."""
        return max(0.0, self._until.get(self._find_key(provider, name), 0.0) - time.monotonic())

    async def open_model(self, provider: Provider, name: str | None) -> LanguageModel | None:
        """Return a provider's model; None if the model is paused or not configured.

        A model that is not configured is paused.
        """
        if self.measure_pause(provider, name):
            return None
        try:
            model = await self._models.open_model(provider, name)
        except ModelNotConfigured as error:
            self._record_failing_model(provider, name, str(error), is_refused=True)
            self._pause_model((provider, name), REFUSAL_PAUSE, str(error))
            return None
        if (provider, name) not in self._usual:
            self._failing.pop((provider, name), None)  # it can be opened now
            self._usual[provider, name] = provider, model.model
        return None if self.measure_pause(provider, name) else model

    def record_answer(self, provider: Provider, name: str | None) -> None:
        """Record an answer of a model, which then no longer counts as failing."""
        self._failed.pop(self._find_key(provider, name), None)
        self._failing.pop(self._find_key(provider, name), None)

    def record_failure(self, provider: Provider, name: str | None, error: ModelUnavailable) -> None:
        """Record a failure, and pause the model as `REFUSAL_PAUSE`, `PAUSES` and the provider require.

        The pause lasts at most `LONGEST_PAUSE` seconds.
        """
        key = self._find_key(provider, name)
        self._record_failing_model(provider, name, str(error), is_refused=isinstance(error, ModelRefused))
        self._failed[key] = failed = self._failed.get(key, 0) + 1
        if isinstance(error, ModelRefused):
            pause = REFUSAL_PAUSE
        else:
            pause = max(PAUSES[min(failed, len(PAUSES)) - 1], error.retry_after or 0.0)
        self._pause_model(key, min(pause, LONGEST_PAUSE), str(error))

    def _find_key(self, provider: Provider, name: str | None) -> _Key:
        """Return the key of a model. An opened default model has one key, for its name and for None."""
        return self._usual.get((provider, name), (provider, name))

    def _record_failing_model(
        self, provider: Provider, name: str | None, error: str, *, is_refused: bool
    ) -> None:
        key = self._find_key(provider, name)
        known = self._failing.get(key)
        is_same = known is not None and known.is_refused == is_refused
        since = known.since if known is not None and is_same else datetime.now(UTC)
        self._failing[key] = FailingModel(provider, key[1], name, error, is_refused, since)

    def _pause_model(self, key: _Key, pause: float, error: str) -> None:
        provider, name = key
        is_opening = pause and not self.measure_pause(provider, name)
        self._until[key] = max(time.monotonic() + pause, self._until.get(key, 0.0))
        if is_opening:
            log.warning(
                "circuit breaker opened, requests wait",
                provider=provider,
                model=name,
                seconds=pause,
                error=error,
            )
