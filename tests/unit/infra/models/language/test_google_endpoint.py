"""Errors of Google's API, and the delay before a retry that they ask for."""

import asyncio
import traceback
from collections.abc import AsyncIterator

import httpx2
import pytest
import pytest_asyncio
from google.genai import Client
from google.genai.errors import APIError

from mnemon_infra.models.language.google.endpoint import GoogleEndpoint
from mnemon_infra.models.language.port import ModelRefused, ModelUnavailable

KEY = "sk-one-that-must-not-be-seen"
MODEL = "a-model-of-our-own"


def failing(status: int, state: str, **detail: str) -> APIError:
    error = {"code": status, "message": KEY, "status": state, "details": [detail]}
    return APIError(status, {"error": error})


@pytest_asyncio.fixture
async def asked() -> AsyncIterator[GoogleEndpoint]:
    client = Client(api_key=KEY)
    async with httpx2.AsyncClient() as http:
        yield GoogleEndpoint(client.aio, http, "https://models.example", MODEL, retries=2)
    client.close()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Make each `asyncio.sleep` return at once; return the list of its arguments, in seconds."""
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", wait)
    return waits


async def test_retry_delay_of_google_is_waited_for(asked: GoogleEndpoint, waits: list[float]) -> None:
    async def busy() -> None:
        raise failing(429, "RESOURCE_EXHAUSTED", retryDelay="12.5s")

    with pytest.raises(ModelUnavailable) as raised:
        await asked.send_request(busy)
    assert raised.value.retry_after == 12.5
    assert waits == [12.5, 12.5]


async def test_long_retry_delay_is_not_waited_for(asked: GoogleEndpoint, waits: list[float]) -> None:
    async def busy() -> None:
        raise failing(429, "RESOURCE_EXHAUSTED", retryDelay="3600s")

    with pytest.raises(ModelUnavailable) as raised:
        await asked.send_request(busy)
    assert raised.value.retry_after == 3600
    assert waits == []


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            failing(400, "INVALID_ARGUMENT", reason="API_KEY_INVALID"),
            r"the key \(HTTP 400\): check GEMINI",
        ),
        (failing(403, "PERMISSION_DENIED"), "refuses the key"),
        (failing(400, "FAILED_PRECONDITION"), "does not serve this account"),
        (failing(404, "NOT_FOUND"), f"models.example has no model {MODEL}, .*and MNEMON_GOOGLE_URL"),
        (failing(402, "UNKNOWN"), "refuses requests to model"),
    ],
)
async def test_refusals_are_distinguished_without_quoting_google(
    error: APIError, words: str, asked: GoogleEndpoint
) -> None:
    async def refusing() -> None:
        raise error

    with pytest.raises(ModelRefused, match=words) as raised:
        await asked.send_request(refusing)
    assert KEY not in "".join(traceback.format_exception(raised.value))
