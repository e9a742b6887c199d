"""Models of OpenAI and servers with the same `/chat/completions`: Ollama, LM Studio, vLLM."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, cast

# Imported here because the SDK would load them on first use, and block the event loop for a second.
import openai.resources.batches
import openai.resources.chat
import openai.resources.files  # noqa: F401
from openai import AsyncOpenAI

from mnemon_infra.config import Deployment
from mnemon_infra.models.api_key import read_api_key
from mnemon_infra.models.language.openai.batches import OpenAIBatches
from mnemon_infra.models.language.openai.endpoint import (
    ANSWER_FORMS,
    Form,
    OpenAIEndpoint,
    ParameterRefused,
    read_completion,
)
from mnemon_infra.models.language.port import (
    ModelAnswer,
    ModelNotConfigured,
    ModelRequest,
)
from mnemon_infra.models.language.reasoning import strip_thoughts

USUAL_MODEL = "gpt-4.1-mini"
OPENAI = "https://api.openai.com/v1"

RETRIES = 2
"""Maximum number of retries of a call.

Before each retry, the SDK waits as long as the server requests, else longer each time. The call fails if the
server requests more than two minutes.
"""


class OpenAIModel:
    """A model of OpenAI, or of a server with the same API; see `LanguageModel`.

    Attributes:
        model: the server's name of the model.
    """

    provider = "openai"

    def __init__(self, endpoint: OpenAIEndpoint) -> None:
        self.model = endpoint.model
        self._endpoint = endpoint
        self._batches = OpenAIBatches(endpoint)

    @property
    def batches(self) -> OpenAIBatches | None:
        """The server's batches; None once the server has shown that it does not support them."""
        return self._batches if self._endpoint.has_batches else None

    @property
    def thinking_tokens(self) -> int:
        """Tokens for thoughts; see `LanguageModel`."""
        return self._endpoint.thinking_tokens

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        """Send a request and wait for the answer; see `LanguageModel.complete`.

        If the server refuses a request with a schema for another reason than its length, the request is sent
        again with the next weaker form of the answer. Later requests use the form that succeeded.
        """
        forms = (
            ANSWER_FORMS[ANSWER_FORMS.index(self._endpoint.form) :]
            if request.schema is not None
            else ANSWER_FORMS[-1:]
        )
        for form in forms:
            try:
                answer = await self._post_request(request, form)
            except ParameterRefused as error:
                if form != forms[-1] and not error.is_too_long:
                    continue
                raise await error.explain(
                    request, self._post_test, self.model, reports_test_error=False
                ) from None
            if request.schema is not None:
                self._endpoint.use_form(form)
            return answer
        raise AssertionError(
            "the request with the last form neither returned an answer nor failed: report this as a bug"
        )

    async def stream_reply(self, messages: Sequence[Mapping[str, str]]) -> AsyncGenerator[str, None]:
        """Yield the model's reply to a conversation, piece by piece as it arrives, without its thoughts.

        Raises:
            ModelUnavailable: the server gives no usable answer.
            ModelRefused: the server refuses the key, the model or the kind of request.
            RequestRefused: the server refuses this request.
        """
        with self._endpoint.translate_errors():
            chunks = await self._endpoint.client.chat.completions.create(
                model=self.model, messages=cast("Any", list(messages)), stream=True
            )
            async with chunks:
                said = (each.delta.content or "" async for chunk in chunks for each in chunk.choices)
                async for piece in strip_thoughts(said):
                    yield piece

    async def _post_request(self, request: ModelRequest, form: Form) -> ModelAnswer:
        while True:
            body = self._endpoint.build_body(request, form)
            try:
                return await self._post(body)
            except ParameterRefused as error:
                # Another request may have omitted the parameter since this body was built.
                if error.parameter not in body or not self._endpoint.omit_parameter(error.parameter):
                    raise

    async def _post_test(self, request: ModelRequest) -> ModelAnswer:
        return await self._post(
            {"model": self.model, "messages": [{"role": "user", "content": request.text}]}
        )

    async def _post(self, body: Mapping[str, Any]) -> ModelAnswer:
        with self._endpoint.translate_errors():
            response = await self._endpoint.client.chat.completions.with_raw_response.create(**body)
            return read_completion(response.content)


@asynccontextmanager
async def open_openai(model: str | None, deployment: Deployment) -> AsyncIterator[OpenAIModel]:
    """Open `model` for the duration of the block; None opens `USUAL_MODEL`.

    No request is sent before the first call.

    Raises:
        ModelNotConfigured: the key is missing, or has characters that no request can carry.
    """
    logging.getLogger("openai").setLevel(logging.WARNING)  # at DEBUG the SDK logs requests
    base_url = deployment.model_url or OPENAI
    async with AsyncOpenAI(
        api_key=read_api_key(deployment, "model", ModelNotConfigured),
        base_url=base_url,
        timeout=deployment.model_timeout,
        max_retries=RETRIES,
    ) as client:
        yield OpenAIModel(OpenAIEndpoint(client, model or USUAL_MODEL, is_openai=base_url.startswith(OPENAI)))
