"""How a server that speaks OpenAI's wire format is asked and understood, and what goes wrong."""

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import httpx
import structlog
from openai import APIStatusError, AsyncOpenAI, OpenAIError

from mnemon_infra.models.language.port import (
    NO_KEY,
    ModelAnswer,
    ModelBusy,
    ModelRefused,
    ModelRequest,
    ModelUnavailable,
    RequestRefused,
    Usage,
)
from mnemon_infra.models.language.provider_error import ProviderError
from mnemon_infra.models.language.retry_after import retry_after

Form = Literal["json_schema", "json_object", "text"]

FORMS: tuple[Form, ...] = ("json_schema", "json_object", "text")
"""How an answer of a schema is asked for, in the order in which that is tried."""

THINKING = 4000
"""Tokens left, besides the answer's, to a model that thinks first: its thoughts count as its answer."""

_THINKS = re.compile(r"o\d|gpt-5(?!.*chat)")
_THOUGHTS = re.compile(r"\s*<think>.*?</think>\s*", re.DOTALL)
"""Models that run at home write them before the answer."""

log = structlog.get_logger("language")

RESPONSE_FORMAT = "response_format"
_OPTIONAL = ("max_completion_tokens", "max_tokens", "prompt_cache_key", "reasoning_effort")


class ParameterRefused(RequestRefused):
    """A request is refused. `parameter`: on account of which, where the server says so."""

    def __init__(self, message: str, error: ProviderError, parameter: str | None, is_too_long: bool) -> None:
        super().__init__(message, error)
        self.parameter = parameter
        self.is_too_long = is_too_long


class OpenAIEndpoint:
    """One model at one address. What it has refused to be asked is not tried again.

    Its errors carry neither the key nor what the server said: servers have been seen to repeat the key.

    Attributes:
        has_batches: until the server has shown that it has none.
    """

    def __init__(self, client: AsyncOpenAI, model: str, is_openai: bool) -> None:
        self.client = client
        self.model = model
        self.form: Form = FORMS[0]
        self.is_openai = is_openai
        self.has_batches = True
        self._untaken: set[str] = set()

    @property
    def at(self) -> str:
        return f"the language model at {self.client.base_url.netloc.decode()}"

    def body(self, request: ModelRequest, form: Form | None = None) -> dict[str, Any]:
        """The request as the server takes it. What is the same every time stands first: that is cached."""
        form = form or self.form
        most_tokens = request.most_tokens
        body: dict[str, Any] = {
            "model": self.model,
            "messages": [
                {"role": "system", "content": request.instructions},
                {"role": "user", "content": request.text},
            ],
        }
        if self.is_openai:
            body["prompt_cache_key"] = f"mnemon-{request.purpose}"
            if _THINKS.match(self.model):
                body["reasoning_effort"] = "low"
                most_tokens += THINKING
        # Servers of one's own know the old name, OpenAI's newer models the new one only.
        is_new = self.is_openai or "max_tokens" in self._untaken
        body["max_completion_tokens" if is_new else "max_tokens"] = most_tokens
        if request.schema is not None and form == "json_schema":
            schema = {"name": request.purpose, "schema": dict(request.schema), "strict": True}
            body["response_format"] = {"type": form, "json_schema": schema}
        elif request.schema is not None and form == "json_object":
            body["response_format"] = {"type": form}
        return {name: value for name, value in body.items() if name not in self._untaken}

    def can_adapt(self, parameter: str) -> bool:
        """Whether requests can do without a parameter, or without this value of it."""
        return parameter in _OPTIONAL or (parameter == RESPONSE_FORMAT and self.form != FORMS[-1])

    def adapt(self, parameter: str) -> None:
        """Make requests without a parameter, or ask for less by it, from now on."""
        if parameter == RESPONSE_FORMAT:
            self.use(FORMS[min(FORMS.index(self.form) + 1, len(FORMS) - 1)])
        else:
            self.leave_out(parameter)

    def leave_out(self, parameter: str | None) -> bool:
        """Send it no more; False where it was not sent, or cannot be left out."""
        if parameter not in _OPTIONAL or parameter in self._untaken:
            return False
        self._untaken.add(parameter)
        return True

    def use(self, form: Form) -> None:
        """Ask for answers so from now on."""
        if form != self.form:
            log.warning("schema form unsupported by the server, falling back", form=form)
            self.form = form

    @contextmanager
    def told(self, of: Literal["model", "batches"] = "model") -> Iterator[None]:
        """What goes wrong within is told in the port's words.

        Raises:
            ModelUnavailable: the server does not answer, or with something else.
            ModelRefused: it answers that it will not.
            NotTaken: it will not take this request.
        """
        try:
            yield
        except APIStatusError as error:
            raise self._refused(error, of) from None
        except (OpenAIError, httpx.HTTPError, LookupError, AttributeError, TypeError, ValueError) as error:
            raise ModelUnavailable(f"{self.at} does not answer: {type(error).__name__}") from None

    def _refused(self, error: APIStatusError, of: Literal["model", "batches"]) -> Exception:
        status, wait = error.status_code, retry_after(error.response.headers)
        if error.code == "insufficient_quota":
            return ModelRefused(f"{self.at} wants to be paid first (HTTP {status})")
        match status:
            case 401 | 403 if self.client.api_key == NO_KEY:
                return ModelRefused(
                    f"{self.at} wants a key, and no key is set (HTTP {status}): set MNEMON_MODEL_API_KEY"
                )
            case 401 | 403:
                return ModelRefused(f"{self.at} refuses the key (HTTP {status}): see MNEMON_MODEL_API_KEY")
            case 404 | 405 | 501 if of == "batches":
                return ModelRefused(
                    f"{self.at} has no batches, or not this one (HTTP {status}): set extraction.mode=online"
                )
            case 404:
                return ModelRefused(
                    f"{self.at} has no model {self.model}, or no /chat/completions (HTTP 404): "
                    "see the setting of the model, and MNEMON_MODEL_URL"
                )
            case 429:
                return ModelBusy(f"{self.at} has no time (HTTP {status})", wait)
            case 408 | 409:
                return ModelUnavailable(f"{self.at} has no time (HTTP {status})", wait)
            case 400 | 413 | 422:
                is_too_long = status == 413 or error.code == "context_length_exceeded"
                return ParameterRefused(
                    f"{self.at} refuses a request (HTTP {status})",
                    ProviderError.of_body(error.body),
                    untaken_parameter(error.body),
                    is_too_long,
                )
            case _ if status < 500:
                return ModelRefused(f"{self.at} refuses what model {self.model} is asked (HTTP {status})")
            case _:
                return ModelUnavailable(f"{self.at} fails (HTTP {status})", wait)


def untaken_parameter(body: object) -> str | None:
    """Return the parameter that an error is about, which some servers name in their message only."""
    error = body.get("error", body) if isinstance(body, Mapping) else None
    if not isinstance(error, Mapping):
        return None
    named = error.get("param")
    if isinstance(named, str) and named:
        return RESPONSE_FORMAT if named.startswith(RESPONSE_FORMAT) else named
    message = str(error.get("message"))
    return next((name for name in (RESPONSE_FORMAT, *_OPTIONAL) if name in message), None)


def read_completion(body: bytes) -> ModelAnswer:
    """Read what a server answers.

    Raises:
        LookupError, TypeError, ValueError: it is no completion, and nothing shows that a model was asked.
    """
    try:
        completion = json.loads(body)
    except (ValueError, RecursionError):
        if not body.lstrip().startswith(b"{"):
            raise
        return ModelAnswer("", Usage(), problem="the answer is broken JSON")
    return outcome(completion)


def outcome(completion: Mapping[str, Any]) -> ModelAnswer:
    """What a completion says, which may be nothing: it is paid for all the same.

    Raises:
        LookupError, TypeError: it is none.
    """
    if "choices" not in completion and "usage" not in completion:
        raise LookupError("neither choices nor usage")
    usage = _usage(completion.get("usage"))
    try:
        choice = completion["choices"][0]
        message, end = choice["message"], choice.get("finish_reason")
        refusal, text = message.get("refusal"), message.get("content")
    except (LookupError, AttributeError, TypeError):
        return ModelAnswer("", usage, problem="the answer has no message")
    if refusal or end == "content_filter":
        who = "a filter of the provider" if end == "content_filter" else "the model"
        return ModelAnswer("", usage, problem=f"{who} will not answer this", is_refused=True)
    is_cut = end == "length"
    if not isinstance(text, str) or not text:  # one that is cut thought to the end
        return ModelAnswer("", usage, is_cut, None if is_cut else "the answer has no text")
    thoughts = _THOUGHTS.match(text)
    return ModelAnswer(text[thoughts.end() :] if thoughts else text, usage, is_cut)


def _usage(given: object) -> Usage:
    """Nothing where the server says nothing."""
    if not isinstance(given, Mapping):
        return Usage()
    details = given.get("prompt_tokens_details")
    cached = details.get("cached_tokens") if isinstance(details, Mapping) else None
    return Usage.of_counts(given.get("prompt_tokens"), cached, given.get("completion_tokens"))
