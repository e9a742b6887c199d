"""Requests to Anthropic's API, parsing of its answers, and translation of its errors."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import httpx2
from anthropic import (
    AnthropicError,
    APIConnectionError,
    APIRequest,
    APIStatusError,
    AsyncAnthropic,
    AsyncAPIResponse,
    AsyncCallNext,
    transform_schema,
)
from anthropic.types import Message, ModelInfo, OutputConfigParam, ThinkingConfigParam
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

from mnemon_infra.models.api_key import NO_KEY
from mnemon_infra.models.language.port import (
    ModelAnswer,
    ModelBusy,
    ModelRefused,
    ModelRequest,
    ModelUnavailable,
    RequestRefused,
    Usage,
)
from mnemon_infra.models.language.provider_error import ProviderError
from mnemon_infra.models.language.retry_after import parse_retry_after
from mnemon_infra.models.status_messages import describe_failure, describe_temporary_failure

LONGEST_WAIT = 60.0
"""Maximum seconds between two attempts. The SDK would wait for weeks if the server requested that."""

BUSY = (429, 529)
"""HTTP statuses of overload, caused by this client or by all clients."""

CAPABILITIES_TIMEOUT = 5.0
"""Maximum seconds of each step of the request for a model's capabilities, such as the connection.

After a timeout, the next request asks again.
"""

THINKING = 4000
"""Additional tokens of the answer for a model whose thinking cannot be turned off."""

_UNUSABLE_ANSWER = (AnthropicError, httpx2.HTTPError, AttributeError, TypeError, ValueError, RecursionError)
"""Errors that calls of the SDK raise for an answer that is unreadable."""


@dataclass(frozen=True, slots=True)
class ModelCapabilities:
    """Capabilities of a model; the defaults are guesses for a model that the provider does not describe.

    Attributes:
        schema: True if the model accepts a JSON Schema of the answer.
        thinking: the parameter that turns thinking off, because thoughts cost as much as answers and count
            towards the limit of the answer's length; None if thinking cannot be turned off, or if the
            provider does not describe the model.
        effort: the lowest effort, if thinking cannot be turned off and the model supports this effort;
            otherwise None.
        thinking_tokens: additional tokens for thoughts, if thinking cannot be turned off.
    """

    schema: bool = True
    thinking: ThinkingConfigParam | None = None
    effort: Literal["low"] | None = None
    thinking_tokens: int = 0


class AnthropicEndpoint:
    """One model of Anthropic, or of a server with Anthropic's API, at one address.

    Error messages of this class contain neither the key nor the request, because some servers repeat both.

    Attributes:
        has_batches: False once the server has shown that it does not support batches.
    """

    def __init__(self, client: AsyncAnthropic, model: str, timeout: float) -> None:
        self.client = client
        self.model = model
        self.has_batches = True
        self._timeout = min(CAPABILITIES_TIMEOUT, timeout)
        self._capabilities: ModelCapabilities | None = None

    @property
    def at(self) -> str:
        """Provider and address, as error messages name them."""
        return f"Anthropic at {self.client.base_url.netloc.decode()}"

    @property
    def thinking_tokens(self) -> int:
        """Additional tokens of a request for thoughts; 0 until the capabilities are known."""
        return self._capabilities.thinking_tokens if self._capabilities else 0

    async def read_capabilities(self) -> ModelCapabilities:
        """Return the capabilities of the model. They are kept, so that later calls send no request.

        The defaults apply if the server refuses to give the capabilities, or does not describe all of them.
        A wrong key or model name then shows with the next request to the model.

        Raises:
            ModelUnavailable: the provider gives no usable answer; the next call asks again.
        """
        if self._capabilities is None:
            client = self.client.with_options(max_retries=0, timeout=self._timeout)
            try:
                with self.translate_errors():
                    info = await client.models.retrieve(self.model)
            except (ModelRefused, RequestRefused):
                self._capabilities = ModelCapabilities()
                return self._capabilities
            try:
                self.has_batches = info.capabilities is None or info.capabilities.batch.supported
                self._capabilities = _parse_capabilities(info)
            except AttributeError:  # private servers send less than Anthropic
                self._capabilities = ModelCapabilities()
        return self._capabilities

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Translate errors within the block to those of the port.

        Raises:
            ModelUnavailable: the provider gives no usable answer, or is overloaded.
            ModelRefused: the provider refuses the key, the model or the kind of request.
            RequestRefused: the provider refuses this request.
        """
        try:
            yield
        except APIStatusError as error:
            raise self._translate_status(error) from None
        except (APIConnectionError, httpx2.TransportError) as error:
            raise ModelUnavailable(
                f"{self.at} does not answer: {type(error).__name__}. Check the network, and "
                "MNEMON_ANTHROPIC_URL if it is set"
            ) from None
        except _UNUSABLE_ANSWER as error:
            raise ModelUnavailable(
                f"{self.at} gave an unusable answer: {type(error).__name__}. Check the server, and "
                "MNEMON_ANTHROPIC_URL"
            ) from None

    def _translate_status(self, error: APIStatusError) -> Exception:
        status, wait = error.status_code, parse_retry_after(error.response.headers)
        if status == 402 or error.error_code == "enforced_spend_limit_reached":
            return ModelRefused(
                f"{self.at} requires payment, or a spending limit is reached (HTTP {status}): check the "
                "account at the provider"
            )
        match status:
            case 401 | 403 if self.client.api_key == NO_KEY:
                return ModelRefused(
                    f"{self.at} requires a key, and none is set (HTTP {status}): set ANTHROPIC_API_KEY"
                )
            case 401 | 403:
                return ModelRefused(f"{self.at} refuses the key (HTTP {status}): check ANTHROPIC_API_KEY")
            case 404:
                return ModelRefused(
                    f"{self.at} has no model {self.model}, or lacks the requested object (HTTP 404): check "
                    "extraction.model and compaction.model, and MNEMON_ANTHROPIC_URL"
                )
            case _ if status in BUSY:
                return ModelBusy(describe_temporary_failure(self.at, status), wait)
            case 408 | 409:
                return ModelUnavailable(describe_temporary_failure(self.at, status), wait)
            case 400 | 413 | 422:
                return RequestRefused(
                    f"{self.at} refuses a request (HTTP {status})", ProviderError.from_body(error.body)
                )
            case _ if status < 500:
                return ModelRefused(
                    f"{self.at} refuses requests to model {self.model} (HTTP {status}): check "
                    "MNEMON_ANTHROPIC_URL, the account at the provider, and the account's access to the model"
                )
            case _:
                return ModelUnavailable(describe_failure(self.at, status), wait)


def build_params(
    request: ModelRequest, model: str, capabilities: ModelCapabilities, cached_for: Literal["5m", "1h"]
) -> MessageCreateParamsNonStreaming:
    """Return the parameters of a request; the constant part comes first so that it is cached.

    Anthropic keeps the constant part for the time `cached_for`: five minutes or one hour.
    """
    asked: MessageCreateParamsNonStreaming = {
        "model": model,
        "max_tokens": request.most_tokens + capabilities.thinking_tokens,
        "system": [
            {
                "type": "text",
                "text": request.instructions,
                "cache_control": {"type": "ephemeral", "ttl": cached_for},
            }
        ],
        "messages": [{"role": "user", "content": request.text}],
    }
    output: OutputConfigParam = {}
    if request.schema is not None and capabilities.schema:
        output["format"] = {"type": "json_schema", "schema": transform_schema(dict(request.schema))}
    if capabilities.effort is not None:
        output["effort"] = capabilities.effort
    if output:
        asked["output_config"] = output
    if capabilities.thinking is not None:
        asked["thinking"] = capabilities.thinking
    return asked


def parse_message(message: Message) -> ModelAnswer:
    """Parse a message. A message without text is an answer too, because the call costs money.

    Raises:
        AttributeError, TypeError: the value is not a message.
    """
    content, given = getattr(message, "content", None), getattr(message, "usage", None)
    if content is None and given is None:
        raise TypeError("the message has neither content nor usage")
    usage, end = _parse_usage(given), getattr(message, "stop_reason", None)
    if end == "refusal":
        return ModelAnswer("", usage, problem="the model refuses to answer the request", is_refused=True)
    is_cut = end in ("max_tokens", "model_context_window_exceeded")
    try:
        text = "".join(block.text for block in content or () if block.type == "text")
    except (AttributeError, TypeError):
        text = ""
    return ModelAnswer(text, usage, is_cut, None if text or is_cut else "the answer has no text")


def _parse_usage(given: object) -> Usage:
    """Return the usage, with 0 for missing counts.

    Tokens that are read from the cache or written to it are part of the input.
    """
    names = "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens"
    counts = [Usage.from_counts(getattr(given, name, None), 0, 0).input for name in names]
    new, cached, written, output = counts
    return Usage.from_counts(new + cached + written, cached, output)


async def reject_long_wait(request: APIRequest, call_next: AsyncCallNext) -> AsyncAPIResponse[Any]:
    """Raise an error if the server asks for a long pause, so that the caller decides whether to wait.

    The function is middleware of the SDK.

    Raises:
        ModelUnavailable, ModelBusy: the provider asks for a pause longer than `LONGEST_WAIT`.
    """
    response = await call_next(request)
    wait = parse_retry_after(response.http_response.headers)
    if wait is not None and wait > LONGEST_WAIT and response.status_code >= 400:
        await response.close()
        error = ModelBusy if response.status_code in BUSY else ModelUnavailable
        raise error(describe_temporary_failure("Anthropic", response.status_code), wait)
    return response


def _parse_capabilities(info: ModelInfo) -> ModelCapabilities:
    can = info.capabilities
    if can is None:
        return ModelCapabilities()
    schema = can.structured_outputs.supported
    if can.thinking.types.disabled.supported:
        return ModelCapabilities(schema, thinking={"type": "disabled"})
    if can.thinking.types.between_tools.supported:  # requests have no tools, so the model never thinks
        return ModelCapabilities(schema, thinking={"type": "between_tools"})
    return ModelCapabilities(schema, None, "low" if can.effort.low.supported else None, THINKING)
