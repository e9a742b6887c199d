"""How a server that speaks OpenAI's wire format is asked and understood, and what goes wrong."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import httpx
import structlog
from openai import APIStatusError, AsyncOpenAI, OpenAIError

from infra.models.language.port import (
    Answer,
    LineFailed,
    ModelBusy,
    ModelRefused,
    ModelUnavailable,
    Request,
    RequestRefused,
    Usage,
)
from infra.models.language.retry_after import retry_after

Form = Literal["json_schema", "json_object", "text"]

FORMS: tuple[Form, ...] = ("json_schema", "json_object", "text")
"""How an answer of a schema is asked for, in the order in which that is tried."""

THINKING = 4000
"""Tokens left, besides the answer's, to a model that thinks first: its thoughts count as its answer."""

_THINKS = re.compile(r"o\d|gpt-5(?!.*chat)")
_THOUGHTS = re.compile(r"\s*<think>.*?</think>\s*", re.DOTALL)
"""Models that run at home write them before the answer."""

log = structlog.get_logger("language")

_OPTIONAL = {"max_tokens", "prompt_cache_key", "reasoning_effort"}


class NotTaken(RequestRefused):
    """A request is refused. `parameter`: on account of which, where the server says so."""

    def __init__(self, message: str, parameter: str | None, is_too_long: bool) -> None:
        super().__init__(message)
        self.parameter = parameter
        self.is_too_long = is_too_long


class Endpoint:
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

    def body(self, request: Request, form: Form | None = None) -> dict[str, Any]:
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

    def leave_out(self, parameter: str | None) -> bool:
        """Send it no more; False where it was not sent, or cannot be left out."""
        if parameter not in _OPTIONAL or parameter in self._untaken:
            return False
        self._untaken.add(parameter)
        return True

    def use(self, form: Form) -> None:
        """Ask for answers so from now on."""
        if form != self.form:
            log.warning("the server does not hold the model to a schema", form=form)
            self.form = form

    def use_less(self) -> None:
        """Ask for less than before: it was refused."""
        self.use(FORMS[min(FORMS.index(self.form) + 1, len(FORMS) - 1)])

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
                return NotTaken(f"{self.at} refuses a request (HTTP {status})", error.param, is_too_long)
            case _ if status < 500:
                return ModelRefused(f"{self.at} refuses what model {self.model} is asked (HTTP {status})")
            case _:
                return ModelUnavailable(f"{self.at} fails (HTTP {status})", wait)


def outcome(completion: Mapping[str, Any]) -> Answer | LineFailed:
    """What a completion says.

    Raises:
        LookupError, AttributeError, TypeError, ValueError: it is none.
    """
    choice = completion["choices"][0]
    message, is_cut = choice["message"], choice.get("finish_reason") == "length"
    if message.get("refusal") or choice.get("finish_reason") == "content_filter":
        return LineFailed("the model will not answer this", is_final=True)
    text = message.get("content")
    if text is None and is_cut:  # it thought to the end
        text = ""
    if not isinstance(text, str):
        raise TypeError("no text")
    thoughts = _THOUGHTS.match(text)
    return Answer(text[thoughts.end() :] if thoughts else text, _usage(completion.get("usage")), is_cut)


def _usage(given: Mapping[str, Any] | None) -> Usage:
    """Nothing where the server says nothing."""
    if given is None:
        return Usage()
    cached = (given.get("prompt_tokens_details") or {}).get("cached_tokens")
    return Usage(
        int(given.get("prompt_tokens") or 0), int(cached or 0), int(given.get("completion_tokens") or 0)
    )
