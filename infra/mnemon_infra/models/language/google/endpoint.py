"""Google's API, asked through its SDK: again where that may help, and with errors of our own."""

from collections.abc import Awaitable, Callable, Mapping
from typing import IO, Any, TypeVar
from urllib.parse import quote, urlsplit

import httpx2
from google.genai.client import AsyncClient
from google.genai.errors import APIError
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_exception,
    stop_after_attempt,
    wait_exponential_jitter,
)

from mnemon_infra.models.language.port import (
    NO_KEY,
    ModelBusy,
    ModelRefused,
    ModelUnavailable,
    RequestRefused,
)
from mnemon_infra.models.language.provider_error import ProviderError

LONGEST_WAIT = 60.0
"""Seconds; who wants to be left alone for longer is not waited for."""

T = TypeVar("T")

_NO_ANSWERS = (httpx2.HTTPError, httpx2.InvalidURL, ValueError, LookupError, TypeError, AttributeError)
"""What the SDK raises besides its own: no connection, or an answer that it cannot make anything of."""

_BACK_OFF = wait_exponential_jitter(initial=0.5, max=8)


class GoogleEndpoint:
    """The API at one address.

    The SDK's own repetitions are left off: they do not heed how long the server wants to be left alone, and
    they log what it said. Errors carry neither the key nor that: servers have been seen to repeat the key.
    """

    def __init__(
        self, client: AsyncClient, http: httpx2.AsyncClient, url: str, model: str, retries: int
    ) -> None:
        self.client = client
        self.model = model
        self._http = http
        self._at = f"the language model at {urlsplit(url).netloc.rpartition('@')[2]}"
        self._tries = 1 + retries

    async def ask(self, call: Callable[[], Awaitable[T]], tries: int | None = None) -> T:
        """What the call gives.

        Args:
            call: asks by `client`; made anew for each try.
            tries: at most; as many as usual where left out.

        Raises:
            ModelUnavailable: it does not answer.
            ModelRefused: it refuses the key, the model or the kind of request.
            RequestRefused: it will never take this request.
        """
        trying = AsyncRetrying(
            stop=stop_after_attempt(tries or self._tries),
            retry=retry_if_exception(_may_pass),
            wait=_wait,
            reraise=True,
        )
        try:
            return await trying(call)
        except APIError as error:
            raise self._refused(error) from None
        except _NO_ANSWERS as error:
            raise ModelUnavailable(f"{self._at} does not answer: {type(error).__name__}") from None

    async def as_sent(self, kind: str, name: str) -> Mapping[str, Any]:
        """A thing with all that Google says of it: the SDK drops what it does not know. A call for `ask`."""
        response = await self._http.get(_path(kind, name))
        await APIError.raise_for_async_response(response)
        body: Mapping[str, Any] = response.json()
        return body

    async def download(self, name: str, file: IO[bytes]) -> None:
        """Into an empty file, as it comes: of a download that breaks off the SDK drops up to a megabyte. A
        call for `ask`.
        """
        file.seek(0)
        file.truncate()
        path = f"{_path('files', name)}:download"
        async with self._http.stream("GET", path, params={"alt": "media"}) as response:
            await APIError.raise_for_async_response(response)
            async for chunk in response.aiter_bytes():
                file.write(chunk)

    def _refused(self, error: APIError) -> ModelUnavailable | RequestRefused:
        status = error.code
        if refuses_key(error) and self._http.headers.get("x-goog-api-key") == NO_KEY:
            wants = "wants a key, and no key is set"
            return ModelRefused(f"{self._at} {wants} (HTTP {status}): set GEMINI_API_KEY")
        if refuses_key(error):
            what = "the key, or has no such thing" if status == 403 else "the key"
            return ModelRefused(f"{self._at} refuses {what} (HTTP {status}): see GEMINI_API_KEY")
        if error.status == "FAILED_PRECONDITION":  # no billing, or a country that it does not serve
            return ModelRefused(f"{self._at} does not serve this account (HTTP {status})")
        match status:
            case 404:
                return ModelRefused(
                    f"{self._at} has no model {self.model}, or not for this (HTTP 404): "
                    "see the setting of the model, and MNEMON_GOOGLE_URL"
                )
            case 429 | 503:  # it is 503 that Google says when a model is asked too much by all
                return ModelBusy(f"{self._at} has no time (HTTP {status})", _retry_after(error))
            case 408 | 409 | 499:
                return ModelUnavailable(f"{self._at} has no time (HTTP {status})", _retry_after(error))
            case 400 | 413 | 422:
                said = ProviderError(code=error.status, message=error.message)
                return RequestRefused(f"{self._at} refuses the request (HTTP {status})", said)
            case _ if status < 500:
                return ModelRefused(f"{self._at} refuses what model {self.model} is asked (HTTP {status})")
            case _:
                return ModelUnavailable(f"{self._at} fails (HTTP {status})")


def _path(kind: str, name: str) -> str:
    return f"{kind}/{quote(name.removeprefix(f'{kind}/'), safe='')}"


def refuses_key(error: APIError) -> bool:
    """A key that is none is a bad request to Google, told from others by its details only."""
    return error.code in (401, 403) or any(
        str(detail.get("reason", "")).startswith("API_KEY") for detail in _details(error)
    )


def _may_pass(error: BaseException) -> bool:
    if isinstance(error, APIError):
        waiting = _retry_after(error)
        return (waiting is None or waiting <= LONGEST_WAIT) and (
            error.code in (408, 409, 429) or error.code >= 500
        )
    return isinstance(error, httpx2.TransportError)


def _wait(state: RetryCallState) -> float:
    error = state.outcome and state.outcome.exception()
    waiting = _retry_after(error) if isinstance(error, APIError) else None
    return _BACK_OFF(state) if waiting is None else waiting


def _retry_after(error: APIError) -> float | None:
    """Seconds; in the header as HTTP has it, or in the details as Google has it: `39s`."""
    headers = getattr(error.response, "headers", None) or {}
    delays = [headers.get("retry-after"), *(detail.get("retryDelay") for detail in _details(error))]
    for delay in delays:
        try:
            return max(0.0, float(str(delay).removesuffix("s")))
        except ValueError:  # no number: an HTTP date, or nothing
            continue
    return None


def _details(error: APIError) -> list[dict[str, Any]]:
    """What the error says besides its message, as far as it has Google's form."""
    body = error.details
    inner = body.get("error", body) if isinstance(body, dict) else None
    details = inner.get("details") if isinstance(inner, dict) else None
    return [detail for detail in details if isinstance(detail, dict)] if isinstance(details, list) else []
