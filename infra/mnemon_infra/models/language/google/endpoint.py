"""Requests to Google's API through its SDK, with retries, and translation of its errors."""

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

from mnemon_infra.models.api_key import NO_KEY
from mnemon_infra.models.language.port import (
    ModelBusy,
    ModelRefused,
    ModelUnavailable,
    RequestRefused,
)
from mnemon_infra.models.language.provider_error import ProviderError
from mnemon_infra.models.status_messages import describe_failure, describe_temporary_failure

LONGEST_WAIT = 60.0
"""Maximum seconds between two attempts; if the server requests a longer wait, the call fails."""

T = TypeVar("T")

_NO_ANSWER = (httpx2.TransportError, httpx2.InvalidURL)
"""Errors that calls of the SDK raise without an answer of the server."""

_UNUSABLE_ANSWER = (httpx2.HTTPError, ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""Errors that calls of the SDK raise for an answer that is unreadable."""

_BACK_OFF = wait_exponential_jitter(initial=0.5, max=8)


class GoogleEndpoint:
    """Google's API at one address, for one model.

    The SDK's own retries are off: they ignore the wait that the server requests, and log the server's
    messages. Error messages of this class contain neither the key nor the server's messages, because some
    servers repeat the key.
    """

    def __init__(
        self, client: AsyncClient, http: httpx2.AsyncClient, url: str, model: str, retries: int
    ) -> None:
        self.client = client
        self.model = model
        self._http = http
        self._at = f"the language model at {urlsplit(url).netloc.rpartition('@')[2]}"
        self._tries = 1 + retries

    async def send_request(self, call: Callable[[], Awaitable[T]], tries: int | None = None) -> T:
        """Send a request, with retries, and return the result.

        Args:
            call: sends the request; called once for each attempt.
            tries: maximum number of attempts; None for one more than the endpoint's `retries`.

        Raises:
            ModelUnavailable: the server gives no usable answer, or is overloaded.
            ModelRefused: the server refuses the key, the model or the kind of request.
            RequestRefused: the server will never take this request.
        """
        trying = AsyncRetrying(
            stop=stop_after_attempt(tries or self._tries),
            retry=retry_if_exception(_is_transient),
            wait=_choose_wait,
            reraise=True,
        )
        try:
            return await trying(call)
        except APIError as error:
            raise self._translate_status(error) from None
        except _NO_ANSWER as error:
            raise ModelUnavailable(
                f"{self._at} does not answer: {type(error).__name__}. Check the network, and "
                "MNEMON_GOOGLE_URL if it is set"
            ) from None
        except _UNUSABLE_ANSWER as error:
            raise ModelUnavailable(
                f"{self._at} gave an unusable answer: {type(error).__name__}. Check the server, and "
                "MNEMON_GOOGLE_URL"
            ) from None

    async def fetch_resource(self, kind: str, name: str) -> Mapping[str, Any]:
        """Return a resource with all its fields; the SDK would drop fields that it does not know.

        The call raises the SDK's errors, so make it through `send_request`.
        """
        response = await self._http.get(_build_path(kind, name))
        await APIError.raise_for_async_response(response)
        body: Mapping[str, Any] = response.json()
        return body

    async def download_file(self, name: str, file: IO[bytes]) -> None:
        """Download the file `name` from Google into `file`, in place of the former content of `file`.

        The call raises the SDK's errors, so make it through `send_request`. The SDK's own download would drop
        up to a megabyte when the connection breaks.
        """
        file.seek(0)
        file.truncate()
        path = f"{_build_path('files', name)}:download"
        async with self._http.stream("GET", path, params={"alt": "media"}) as response:
            await APIError.raise_for_async_response(response)
            async for chunk in response.aiter_bytes():
                file.write(chunk)

    def _translate_status(self, error: APIError) -> ModelUnavailable | RequestRefused:
        status = error.code
        if refuses_key(error) and self._http.headers.get("x-goog-api-key") == NO_KEY:
            wants = "requires a key, and none is set"
            return ModelRefused(f"{self._at} {wants} (HTTP {status}): set GEMINI_API_KEY")
        if refuses_key(error):
            what = "the key, or does not have the requested object" if status == 403 else "the key"
            return ModelRefused(
                f"{self._at} refuses {what} (HTTP {status}): check GEMINI_API_KEY or GOOGLE_API_KEY"
            )
        if error.status == "FAILED_PRECONDITION":  # no billing, or a country without the service
            return ModelRefused(
                f"{self._at} does not serve this account (HTTP {status}): check its billing and its country"
            )
        match status:
            case 404:
                return ModelRefused(
                    f"{self._at} has no model {self.model}, or does not offer it for this kind of request "
                    "(HTTP 404): check extraction.model and compaction.model, and MNEMON_GOOGLE_URL"
                )
            case 429:
                return ModelBusy(describe_temporary_failure(self._at, status), _read_retry_after(error))
            case 503:  # Google answers 503 if all users together ask too much of a model
                return ModelBusy(
                    f"{self._at} is overloaded (HTTP 503): repeat the request later", _read_retry_after(error)
                )
            case 408 | 409 | 499:
                return ModelUnavailable(
                    describe_temporary_failure(self._at, status), _read_retry_after(error)
                )
            case 400 | 413 | 422:
                said = ProviderError(code=error.status, message=error.message)
                return RequestRefused(f"{self._at} refuses the request (HTTP {status})", said)
            case _ if status < 500:
                return ModelRefused(
                    f"{self._at} refuses requests to model {self.model} (HTTP {status}): check "
                    "MNEMON_GOOGLE_URL, the account at the provider, and the account's access to the model"
                )
            case _:
                return ModelUnavailable(describe_failure(self._at, status))


def _build_path(kind: str, name: str) -> str:
    return f"{kind}/{quote(name.removeprefix(f'{kind}/'), safe='')}"


def refuses_key(error: APIError) -> bool:
    """Return whether an error may mean that the server refuses the key.

    Google answers an invalid key with HTTP 400; only the details of the error name the key as the reason.
    """
    return error.code in (401, 403) or any(
        str(detail.get("reason", "")).startswith("API_KEY") for detail in _read_details(error)
    )


def _is_transient(error: BaseException) -> bool:
    if isinstance(error, APIError):
        waiting = _read_retry_after(error)
        return (waiting is None or waiting <= LONGEST_WAIT) and (
            error.code in (408, 409, 429) or error.code >= 500
        )
    return isinstance(error, httpx2.TransportError)


def _choose_wait(state: RetryCallState) -> float:
    error = state.outcome and state.outcome.exception()
    waiting = _read_retry_after(error) if isinstance(error, APIError) else None
    return _BACK_OFF(state) if waiting is None else waiting


def _read_retry_after(error: APIError) -> float | None:
    """Return the seconds to wait before the next attempt; None if the error does not give them.

    The seconds are in the HTTP header, or in the details in Google's form: `39s`.
    """
    headers = getattr(error.response, "headers", None) or {}
    delays = [headers.get("retry-after"), *(detail.get("retryDelay") for detail in _read_details(error))]
    for delay in delays:
        try:
            return max(0.0, float(str(delay).removesuffix("s")))
        except ValueError:  # not a number: an HTTP date, or absent
            continue
    return None


def _read_details(error: APIError) -> list[dict[str, Any]]:
    """Return the details of an error; empty if the error does not have Google's form."""
    body = error.details
    inner = body.get("error", body) if isinstance(body, dict) else None
    details = inner.get("details") if isinstance(inner, dict) else None
    return [detail for detail in details if isinstance(detail, dict)] if isinstance(details, list) else []
