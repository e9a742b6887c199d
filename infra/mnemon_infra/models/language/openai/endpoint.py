"""Requests to a server with OpenAI's wire format, parsing of its answers, and translation of its errors."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import httpx
import structlog
from openai import APIConnectionError, APIStatusError, AsyncOpenAI, OpenAIError

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

Form = Literal["json_schema", "json_object", "text"]

ANSWER_FORMS: tuple[Form, ...] = ("json_schema", "json_object", "text")
"""Forms of an answer that has a schema, in the order of attempts.

They are values of `response_format`; for `text` the parameter is omitted.
"""

THINKING = 4000
"""Additional tokens for a model that thinks first, because its thoughts count as part of the answer."""

_THINKS = re.compile(r"o\d|gpt-5(?!.*chat)")
_THOUGHTS = re.compile(r"\s*<think>.*?</think>\s*", re.DOTALL)
"""Thoughts that models on private servers write before the answer."""

log = structlog.get_logger("language")

_UNUSABLE_ANSWER = (
    OpenAIError,
    httpx.HTTPError,
    LookupError,
    AttributeError,
    TypeError,
    ValueError,
    RecursionError,
)
"""Errors that calls of the SDK, and the parsing of its answers, raise for an answer that is unreadable."""

RESPONSE_FORMAT = "response_format"
_OPTIONAL = ("max_completion_tokens", "max_tokens", "prompt_cache_key", "reasoning_effort")


class ParameterRefused(RequestRefused):
    """The server refuses a request, mostly because of a parameter or because of its length.

    Attributes:
        parameter: the parameter that the server names as the reason; None if it names none.
        is_too_long: True if the server names the length of the request as the reason.
    """

    def __init__(self, message: str, error: ProviderError, parameter: str | None, is_too_long: bool) -> None:
        super().__init__(message, error)
        self.parameter = parameter
        self.is_too_long = is_too_long


class OpenAIEndpoint:
    """One model of a server with OpenAI's wire format, at one address.

    Optional parameters that the server has refused are not sent again.

    Error messages of this class contain neither the key nor the server's messages: some servers repeat the
    key.

    Attributes:
        form: form in which requests ask for answers with a schema.
        has_batches: False once the server has shown that it does not support batches.
    """

    def __init__(self, client: AsyncOpenAI, model: str, is_openai: bool) -> None:
        self.client = client
        self.model = model
        self.form: Form = ANSWER_FORMS[0]
        self.is_openai = is_openai
        self.has_batches = True
        self._rejected: set[str] = set()

    @property
    def at(self) -> str:
        """The address, as error messages name it."""
        return f"the language model at {self.client.base_url.netloc.decode()}"

    @property
    def thinking_tokens(self) -> int:
        """Additional tokens of a request for thoughts; 0 for a model that does not think."""
        return THINKING if self.is_openai and _THINKS.match(self.model) else 0

    def build_body(self, request: ModelRequest, form: Form | None = None) -> dict[str, Any]:
        """Return the body of a request, without the parameters that the server has refused.

        `form` is the form of the answer; None takes the form of the endpoint. The constant part comes first,
        so that the server caches it.
        """
        form = form or self.form
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [
                {"role": "system", "content": request.instructions},
                {"role": "user", "content": request.text},
            ],
        }
        if self.is_openai:
            body["prompt_cache_key"] = f"mnemon-{request.purpose}"
        if self.thinking_tokens:
            body["reasoning_effort"] = "low"
        # Private servers know the old name, OpenAI's newer models only the new one.
        is_new = self.is_openai or "max_tokens" in self._rejected
        body["max_completion_tokens" if is_new else "max_tokens"] = request.most_tokens + self.thinking_tokens
        if request.schema is not None and form == "json_schema":
            schema = {"name": request.purpose, "schema": dict(request.schema), "strict": True}
            body["response_format"] = {"type": form, "json_schema": schema}
        elif request.schema is not None and form == "json_object":
            body["response_format"] = {"type": form}
        return {name: value for name, value in body.items() if name not in self._rejected}

    def can_adapt(self, parameter: str) -> bool:
        """Return whether requests can omit a parameter, or ask for a weaker form of the answer instead."""
        return parameter in _OPTIONAL or (parameter == RESPONSE_FORMAT and self.form != ANSWER_FORMS[-1])

    def adapt_parameter(self, parameter: str) -> None:
        """Omit a parameter from now on. For `response_format`, ask for the next weaker form of the answer."""
        if parameter == RESPONSE_FORMAT:
            self.use_form(ANSWER_FORMS[min(ANSWER_FORMS.index(self.form) + 1, len(ANSWER_FORMS) - 1)])
        else:
            self.omit_parameter(parameter)

    def omit_parameter(self, parameter: str | None) -> bool:
        """Stop sending a parameter; return False if it is not optional."""
        if parameter not in _OPTIONAL:
            return False
        self._rejected.add(parameter)
        return True

    def use_form(self, form: Form) -> None:
        """Ask for answers with a schema in this form from now on, unless a weaker one is in use.

        Another request may have chosen a weaker form meanwhile.
        """
        if ANSWER_FORMS.index(form) > ANSWER_FORMS.index(self.form):
            log.warning(
                "response format refused by the server, falling back",
                model=self.model,
                refused_form=self.form,
                form=form,
            )
            self.form = form

    @contextmanager
    def translate_errors(self, api: Literal["model", "batches"] = "model") -> Iterator[None]:
        """Translate errors within the block to those of the port.

        Args:
            api: the part of the API that the block calls. If the server lacks the path, the next step in the
                error message is to check the model (`model`), or to set extraction.mode (`batches`).

        Raises:
            ModelUnavailable: the server gives no usable answer, or is overloaded.
            ModelRefused: the server refuses the key, the model or the kind of request.
            ParameterRefused: the server refuses this request.
        """
        try:
            yield
        except APIStatusError as error:
            raise self._translate_status(error, api) from None
        except (APIConnectionError, httpx.TransportError) as error:
            raise ModelUnavailable(
                f"{self.at} does not answer: {type(error).__name__}. Check the network, and "
                "MNEMON_MODEL_URL if it is set"
            ) from None
        except _UNUSABLE_ANSWER as error:
            raise ModelUnavailable(
                f"{self.at} gave an unusable answer: {type(error).__name__}. Check the server, and "
                "MNEMON_MODEL_URL"
            ) from None

    def _translate_status(self, error: APIStatusError, api: Literal["model", "batches"]) -> Exception:
        status, wait = error.status_code, parse_retry_after(error.response.headers)
        if error.code == "insufficient_quota":
            return ModelRefused(
                f"{self.at} requires payment, or a spending limit is reached (HTTP {status}): check the "
                "account at the provider"
            )
        match status:
            case 401 | 403 if self.client.api_key == NO_KEY:
                return ModelRefused(
                    f"{self.at} requires a key, and none is set (HTTP {status}): set MNEMON_MODEL_API_KEY"
                )
            case 401 | 403:
                return ModelRefused(
                    f"{self.at} refuses the key (HTTP {status}): check MNEMON_MODEL_API_KEY or OPENAI_API_KEY"
                )
            case 404 | 405 | 501 if api == "batches":
                return ModelRefused(
                    f"{self.at} does not support batches, or lacks this batch (HTTP {status}): "
                    "set extraction.mode=online"
                )
            case 404:
                return ModelRefused(
                    f"{self.at} has no model {self.model}, or no /chat/completions (HTTP 404): check "
                    "extraction.model, compaction.model or MNEMON_MODEL, and MNEMON_MODEL_URL"
                )
            case 429:
                return ModelBusy(describe_temporary_failure(self.at, status), wait)
            case 408 | 409:
                return ModelUnavailable(describe_temporary_failure(self.at, status), wait)
            case 400 | 413 | 422:
                is_too_long = status == 413 or error.code == "context_length_exceeded"
                return ParameterRefused(
                    f"{self.at} refuses a request (HTTP {status})",
                    ProviderError.from_body(error.body),
                    find_rejected_parameter(error.body),
                    is_too_long,
                )
            case _ if status < 500:
                return ModelRefused(
                    f"{self.at} refuses requests to model {self.model} (HTTP {status}): check "
                    "MNEMON_MODEL_URL, the account at the provider, and the account's access to the model"
                )
            case _:
                return ModelUnavailable(describe_failure(self.at, status), wait)


def find_rejected_parameter(body: object) -> str | None:
    """Return the parameter that an error names in `param`, else in its message; None if it names none."""
    error = body.get("error", body) if isinstance(body, Mapping) else None
    if not isinstance(error, Mapping):
        return None
    named = error.get("param")
    if isinstance(named, str) and named:
        return RESPONSE_FORMAT if named.startswith(RESPONSE_FORMAT) else named
    message = str(error.get("message"))
    return next((name for name in (RESPONSE_FORMAT, *_OPTIONAL) if name in message), None)


def read_completion(body: bytes) -> ModelAnswer:
    """Parse the body of a completion.

    Raises:
        LookupError, AttributeError, TypeError, ValueError, RecursionError: the body is not a completion, and
            nothing shows that a model has handled the request.
    """
    try:
        completion = json.loads(body)
    except (ValueError, RecursionError):
        if not body.lstrip().startswith(b"{"):
            raise
        return ModelAnswer("", Usage(), problem="the answer is broken JSON")
    return parse_completion(completion)


def parse_completion(completion: Mapping[str, Any]) -> ModelAnswer:
    """Parse a completion. A completion without text is an answer too, because the call costs money.

    Raises:
        LookupError, AttributeError, TypeError: the value is not a completion.
    """
    if "choices" not in completion and "usage" not in completion:
        raise LookupError("the response has neither choices nor usage")
    usage = _parse_usage(completion.get("usage"))
    try:
        choice = completion["choices"][0]
        message, end = choice["message"], choice.get("finish_reason")
        refusal, text = message.get("refusal"), message.get("content")
    except (LookupError, AttributeError, TypeError):
        return ModelAnswer("", usage, problem="the answer has no message")
    if refusal or end == "content_filter":
        who = "a filter of the provider" if end == "content_filter" else "the model"
        return ModelAnswer("", usage, problem=f"{who} refuses to answer the request", is_refused=True)
    is_cut = end == "length"
    if not isinstance(text, str) or not text:  # a cut answer consists of thoughts only
        return ModelAnswer("", usage, is_cut, None if is_cut else "the answer has no text")
    thoughts = _THOUGHTS.match(text)
    return ModelAnswer(text[thoughts.end() :] if thoughts else text, usage, is_cut)


def _parse_usage(given: object) -> Usage:
    """Return the usage, with 0 for missing counts."""
    if not isinstance(given, Mapping):
        return Usage()
    details = given.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    return Usage.from_counts(given.get("prompt_tokens"), cached, given.get("completion_tokens"))
