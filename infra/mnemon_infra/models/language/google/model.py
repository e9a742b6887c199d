"""Models of Google, through its SDK for the Gemini Developer API."""

import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import httpx2
from google.genai import Client
from google.genai.types import AutomaticFunctionCallingConfig, GenerateContentConfig, HttpOptions
from pydantic import ValidationError

from mnemon_infra.config import Deployment
from mnemon_infra.models.api_key import read_api_key
from mnemon_infra.models.language.google.answers import THINKING, compute_token_limit, parse_response
from mnemon_infra.models.language.google.batches import GoogleBatches
from mnemon_infra.models.language.google.endpoint import GoogleEndpoint
from mnemon_infra.models.language.google.prefix_cache import CachedInstructions
from mnemon_infra.models.language.port import (
    ModelAnswer,
    ModelNotConfigured,
    ModelRefused,
    ModelRequest,
    RequestRefused,
    Usage,
)

USUAL_MODEL = "gemini-3.5-flash-lite"
GOOGLE, VERSION = "https://generativelanguage.googleapis.com", "v1beta"

RETRIES = 2

LIFETIME = 600.0
"""Seconds for which Google keeps cached instructions."""


class GoogleModel:
    """A model of Google; see `LanguageModel`.

    Attributes:
        model: Google's name of the model.
        thinking_tokens: see `LanguageModel`.
    """

    provider = "google"
    thinking_tokens = THINKING

    def __init__(self, server: GoogleEndpoint, cached: CachedInstructions) -> None:
        self.model = server.model
        self.batches = GoogleBatches(server)
        self._server = server
        self._cached = cached

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Send a request, with cached instructions if Google has them; see `LanguageModel.complete`.

        If Google refuses a request with cached instructions, the request is sent again with the instructions
        themselves.
        """
        name = await self._cached.find_content(request.instructions)
        if name is None:
            return await self._complete_uncached(request)
        try:
            return await self._server.send_request(partial(self._request_answer, request, name))
        except (ModelRefused, RequestRefused):  # Google also refuses if the cached content is gone
            answered = await self._complete_uncached(request)
            self._cached.record_loss(request.instructions, name)
            return answered

    async def _complete_uncached(self, request: ModelRequest) -> ModelAnswer:
        try:
            return await self._send_uncached(request)
        except RequestRefused as error:
            raise await error.explain(request, self._send_uncached, self.model) from None

    async def _send_uncached(self, request: ModelRequest) -> ModelAnswer:
        return await self._server.send_request(partial(self._request_answer, request))

    async def _request_answer(self, request: ModelRequest, cached: str | None = None) -> ModelAnswer:
        try:
            response = await self._server.client.models.generate_content(
                model=self.model, contents=request.text, config=_build_config(request, cached)
            )
        except ValidationError:
            return ModelAnswer("", Usage(), problem="the answer has an unexpected form")
        except json.JSONDecodeError as error:
            if not error.doc.lstrip().startswith("{"):
                raise
            return ModelAnswer("", Usage(), problem="the answer is broken JSON")
        return parse_response(response.model_dump(mode="json", by_alias=True, exclude_none=True))


@asynccontextmanager
async def open_google(
    model: str | None, deployment: Deployment, *, clock: Callable[[], float] = time.monotonic
) -> AsyncIterator[GoogleModel]:
    """Open `model` for the duration of the block; None opens `USUAL_MODEL`.

    Raises:
        ModelNotConfigured: the key is missing, or has characters that no request can carry.
    """
    url = (deployment.google_url or GOOGLE).rstrip("/")
    key = read_api_key(deployment, "google", ModelNotConfigured)
    async with httpx2.AsyncClient(
        base_url=f"{url}/{VERSION}",
        headers={"x-goog-api-key": key},
        timeout=deployment.model_timeout,
        follow_redirects=True,
    ) as http:
        client = Client(
            enterprise=False,
            api_key=key,
            http_options=HttpOptions(
                base_url=url,
                api_version=VERSION,
                timeout=round(deployment.model_timeout * 1000),
                httpx_async_client=http,
            ),
        )
        server = GoogleEndpoint(client.aio, http, url, model or USUAL_MODEL, RETRIES)
        cached = CachedInstructions(server, LIFETIME, clock)
        try:
            yield GoogleModel(server, cached)
        finally:
            await cached.close()
            client.close()


def _build_config(request: ModelRequest, cached: str | None) -> GenerateContentConfig:
    return GenerateContentConfig(
        system_instruction=None if cached else request.instructions,
        cached_content=cached,
        max_output_tokens=compute_token_limit(request),
        response_mime_type=None if request.schema is None else "application/json",
        response_json_schema=None if request.schema is None else dict(request.schema),
        automatic_function_calling=AutomaticFunctionCallingConfig(disable=True),
    )
