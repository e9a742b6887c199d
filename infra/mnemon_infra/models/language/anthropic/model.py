"""Models of Anthropic, through its own SDK."""

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

# Imported here because the SDK would load them on first use, and block the event loop for a second.
import anthropic.resources.messages
import anthropic.resources.models  # noqa: F401
from anthropic import AsyncAnthropic

from mnemon_infra.config import Deployment
from mnemon_infra.models.api_key import read_api_key
from mnemon_infra.models.language.anthropic.batches import AnthropicBatches
from mnemon_infra.models.language.anthropic.endpoint import (
    AnthropicEndpoint,
    build_params,
    parse_message,
    reject_long_wait,
)
from mnemon_infra.models.language.port import (
    ModelAnswer,
    ModelNotConfigured,
    ModelRequest,
    ModelUnavailable,
    RequestRefused,
    Usage,
)

USUAL_MODEL = "claude-haiku-5-5"
ANTHROPIC = "https://api.anthropic.com"

RETRIES = 2
"""Maximum number of retries of a call.

Before each retry, the SDK waits as long as the server requests, else longer each time. The call fails if the
server requests more than `endpoint.LONGEST_WAIT` seconds.
"""


class AnthropicModel:
    """A model of Anthropic; see `LanguageModel`.

    Attributes:
        model: Anthropic's name of the model.
    """

    provider = "anthropic"

    def __init__(self, endpoint: AnthropicEndpoint) -> None:
        self.model = endpoint.model
        self._batches = AnthropicBatches(endpoint)
        self._endpoint = endpoint

    @property
    def batches(self) -> AnthropicBatches | None:
        """The provider's batches; None once the server has shown that it does not support them."""
        return self._batches if self._endpoint.has_batches else None

    @property
    def thinking_tokens(self) -> int:
        """Tokens for thoughts; see `LanguageModel`."""
        return self._endpoint.thinking_tokens

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Send a request and wait for the answer; see `LanguageModel.complete`."""
        try:
            return await self._request_answer(request)
        except RequestRefused as error:
            raise await error.explain(request, self._request_answer, self.model) from None

    async def _request_answer(self, request: ModelRequest) -> ModelAnswer:
        asked = build_params(request, self.model, await self._endpoint.read_capabilities(), cached_for="5m")
        with self._endpoint.translate_errors():
            try:
                return parse_message(await self._endpoint.client.messages.create(**asked))
            except json.JSONDecodeError as error:
                if not error.doc.lstrip().startswith("{"):
                    raise
                return ModelAnswer("", Usage(), problem="the answer is broken JSON")


@asynccontextmanager
async def open_anthropic(model: str | None, deployment: Deployment) -> AsyncIterator[AnthropicModel]:
    """Open `model` for the duration of the block; None opens `USUAL_MODEL`.

    The capabilities of the model are requested now, or with the first request if Anthropic does not answer.

    Raises:
        ModelNotConfigured: the key is missing, or has characters that no request can carry.
    """
    logging.getLogger("anthropic").setLevel(logging.WARNING)  # at DEBUG the SDK logs requests
    async with AsyncAnthropic(
        api_key=read_api_key(deployment, "anthropic", ModelNotConfigured),
        base_url=deployment.anthropic_url or ANTHROPIC,
        timeout=deployment.model_timeout,
        max_retries=RETRIES,
        middleware=[reject_long_wait],
        open_telemetry=False,  # its spans may contain requests
    ) as client:
        endpoint = AnthropicEndpoint(client, model or USUAL_MODEL, deployment.model_timeout)
        with suppress(ModelUnavailable):
            await endpoint.read_capabilities()
        yield AnthropicModel(endpoint)
