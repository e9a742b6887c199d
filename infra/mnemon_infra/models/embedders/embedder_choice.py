"""Choice of the embedder by the settings."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import assert_never

from mnemon_contracts.settings.groups import Embedding
from mnemon_infra.config import Deployment
from mnemon_infra.models.embedding import Embedder, EmbeddingNotConfigured


@asynccontextmanager
async def open_embedder(settings: Embedding, deployment: Deployment) -> AsyncIterator[Embedder | None]:
    """Open the embedder for the duration of the block; yield None if the provider is `none`.

    A provider's package is imported only if the settings name the provider: some imports take a second.

    Raises:
        EmbeddingNotConfigured: a package or a key is missing, the key cannot be sent, or `wordllama` or
            `fastembed` has no such model.
        EmbeddingUnavailable: the provider gives no usable answer, or its model cannot be loaded.
        EmbeddingRefused: the provider `openai` refuses the first request, for example for an unknown model.
    """
    match settings.provider:
        case "none":
            yield None
        case "wordllama":
            from mnemon_infra.models.embedders.wordllama import MODEL, load_wordllama

            if settings.model not in (None, MODEL):
                raise EmbeddingNotConfigured(
                    f"wordllama has no model {settings.model}. Name no model, or {MODEL}, in the setting "
                    "embedding.model, or in the option of the command"
                )
            yield await asyncio.to_thread(load_wordllama)
        case "openai":
            from mnemon_infra.models.embedders.openai_embeddings import open_openai

            async with open_openai(settings.model, deployment) as model:
                yield model
        case "fastembed":
            from mnemon_infra.models.embedders.fastembed_embeddings import USUAL_MODEL, load_fastembed

            yield await asyncio.to_thread(load_fastembed, settings.model or USUAL_MODEL)
        case _:
            assert_never(settings.provider)
