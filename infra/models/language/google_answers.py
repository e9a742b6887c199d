"""What Google's models are asked and answer: the same at once and in a batch."""

from collections.abc import Mapping
from typing import Any

from infra.models.language.port import Answer, ModelUnavailable, Request, RequestRefused, Usage

REFUSING = frozenset({"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"})
"""Ends of an answer that the same request would come to again."""

THOUGHTS = 8_000
"""Tokens that a model may think with; Google counts them among those of the answer."""


def most_tokens(request: Request) -> int:
    """Of thoughts and answer, at most."""
    return request.most_tokens + THOUGHTS


def answer(response: Mapping[str, Any]) -> Answer:
    """What is in a response.

    Raises:
        RequestRefused: the request is blocked, or its answer.
        ModelUnavailable: there is no answer in it.
    """
    try:
        return _answer(response)
    except (LookupError, TypeError, AttributeError, ValueError):
        raise ModelUnavailable("Google's model does not answer with a text") from None


def _answer(response: Mapping[str, Any]) -> Answer:
    if (response.get("promptFeedback") or {}).get("blockReason"):
        raise RequestRefused("Google blocks the request")
    candidate = response["candidates"][0]
    end = candidate.get("finishReason")
    if end in REFUSING:
        raise RequestRefused(f"Google blocks the answer: {end}")
    parts = (candidate.get("content") or {}).get("parts") or []
    text = "".join(part.get("text") or "" for part in parts if not part.get("thought"))
    return Answer(text, _usage(response.get("usageMetadata") or {}), is_cut=end == "MAX_TOKENS")


def _usage(said: Mapping[str, Any]) -> Usage:
    """What is cached is part of what was asked; thoughts are paid for like what is said."""

    def tokens(name: str) -> int:
        number = said.get(name)
        return number if isinstance(number, int) and number > 0 else 0

    asked = tokens("promptTokenCount")
    return Usage(
        input=asked,
        cached=min(asked, tokens("cachedContentTokenCount")),
        output=tokens("candidatesTokenCount") + tokens("thoughtsTokenCount"),
    )
