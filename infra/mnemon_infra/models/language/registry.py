"""Registry of language models: each model is opened when it is first needed, and stays open."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from importlib import import_module
from typing import assert_never

from mnemon_contracts.settings.language_models import Provider
from mnemon_infra.config import Deployment
from mnemon_infra.models.language.port import (
    BatchApi,
    LanguageModel,
    ModelAnswer,
    ModelBusy,
    ModelNotConfigured,
    ModelRefused,
    ModelRequest,
    ModelUnavailable,
    RequestRefused,
)
from mnemon_infra.telemetry import metrics


class LanguageModels:
    """Language models of a process, opened on first use."""

    def __init__(self, deployment: Deployment, opened: AsyncExitStack) -> None:
        self._deployment = deployment
        self._opened = opened
        self._models: dict[tuple[Provider, str | None], LanguageModel] = {}
        self._opening = asyncio.Lock()
        self._free = asyncio.Semaphore(deployment.model_requests)

    async def open_model(self, provider: Provider, model: str | None) -> LanguageModel:
        """Return a provider's model; None opens the provider's default model.

        All models of this process together have at most `model_requests` online calls in flight.

        Raises:
            ModelNotConfigured: a package or a key is missing, the key cannot be sent, or the provider
                `offline` has no such model.
        """
        key = provider, model
        if key not in self._models:
            async with self._opening:
                if key not in self._models:
                    await _import_provider(provider)
                    opening = _open_provider(provider, model, self._deployment)
                    self._models[key] = _BoundedModel(
                        await self._opened.enter_async_context(opening), self._free
                    )
        return self._models[key]


class _BoundedModel:
    """A model whose online calls are counted in metrics.

    A call waits while `model_requests` online calls of all models of the process are in flight.
    """

    def __init__(self, model: LanguageModel, free: asyncio.Semaphore) -> None:
        self.provider = model.provider
        self.model = model.model
        self._model = model
        self._free = free

    @property
    def batches(self) -> BatchApi | None:
        """The provider's API for batches; None if the provider, or the server in use, has none."""
        return self._model.batches

    @property
    def thinking_tokens(self) -> int:
        """Tokens for thoughts that requests allow in addition to their `most_tokens`."""
        return self._model.thinking_tokens

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Send a request and wait for the answer; see `LanguageModel.complete`."""
        async with self._free:
            begun, outcome = time.perf_counter(), "failed"
            try:
                answer = await self._model.complete(request)
                outcome = "answered"
            except (ModelUnavailable, RequestRefused) as error:
                outcome = _name_outcome(error)
                raise
            finally:
                labels = self.provider, request.purpose
                metrics.MODEL_SECONDS.observe(time.perf_counter() - begun, *labels)
                metrics.MODEL_CALLS.add(*labels, outcome)
            return answer


def _name_outcome(error: ModelUnavailable | RequestRefused) -> str:
    match error:
        case ModelBusy():
            return "busy"
        case ModelRefused():
            return "refused"
        case RequestRefused():
            return "request_refused"
    return "unavailable"


@asynccontextmanager
async def open_language_models(deployment: Deployment) -> AsyncIterator[LanguageModels]:
    """Yield the registry of models. At the end of the block, close the models that it has opened."""
    async with AsyncExitStack() as opened:
        yield LanguageModels(deployment, opened)


async def _import_provider(provider: Provider) -> None:
    """Import a provider's package in another thread, because that takes one or two seconds."""
    try:
        await asyncio.to_thread(import_module, f"{__package__}.{provider}.model")
    except ImportError as error:
        if (error.name or __package__).startswith(__package__):
            raise
        extra = provider if provider in ("anthropic", "google") else "server"
        raise ModelNotConfigured(
            f"the package of the provider {provider} is not installed: pip install 'mnemon[{extra}]'"
        ) from None


def _open_provider(
    provider: Provider, model: str | None, deployment: Deployment
) -> AbstractAsyncContextManager[LanguageModel]:
    match provider:
        case "offline":
            from mnemon_infra.models.language.offline.model import build_offline_model

            rules = build_offline_model()
            if model not in (None, rules.model):
                raise ModelNotConfigured(
                    f"the provider `offline` has no model {model}: name no model, or {rules.model}, in the "
                    "settings extraction.model and compaction.model"
                )
            return nullcontext(rules)
        case "openai":
            from mnemon_infra.models.language.openai.model import open_openai

            return open_openai(model, deployment)
        case "anthropic":
            from mnemon_infra.models.language.anthropic.model import open_anthropic

            return open_anthropic(model, deployment)
        case "google":
            from mnemon_infra.models.language.google.model import open_google

            return open_google(model, deployment)
        case _:
            assert_never(provider)
