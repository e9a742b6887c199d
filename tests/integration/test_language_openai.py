"""OpenAI's models, and those of servers that speak its wire format: the real SDK, and a local server."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from bench.provider_server.server import ProviderServer
from infra.config import Deployment
from infra.models.language.openai import OpenAIModel, open_openai
from tests.integration.batches_suite import BatchesSuite
from tests.integration.language_suite import KEY, MODEL


class TestOpenAI(BatchesSuite):
    creating = "/v1/batches"

    def opened(self, server: ProviderServer, **changes: Any) -> AbstractAsyncContextManager[OpenAIModel]:
        return open_openai(MODEL, Deployment(model_url=server.openai_url, model_api_key=KEY, **changes))

    def of_others(self) -> Mapping[str, Any]:
        return {"metadata": {"purpose": "of somebody else"}}
