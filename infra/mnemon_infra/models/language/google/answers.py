"""What Google's models are asked and answer: the same at once and in a batch."""

from collections.abc import Mapping
from typing import Any

from mnemon_infra.models.language.port import ModelAnswer, ModelRequest, Usage

REFUSING = frozenset({"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"})
"""Ends of an answer that the same request would come to again."""

ANSWERING = frozenset({"candidates", "promptFeedback", "usageMetadata"})
"""Fields of a response, any of which shows that a model was asked."""

THOUGHTS = 8_000
"""Tokens that a model may think with; Google counts them among those of the answer."""


def most_tokens(request: ModelRequest) -> int:
    """Of thoughts and answer, at most."""
    return request.most_tokens + THOUGHTS


def answer(response: Mapping[str, Any]) -> ModelAnswer:
    """What is in a response, which may be nothing: it is paid for all the same.

    Raises:
        LookupError, AttributeError, TypeError: it is none.
    """
    if not ANSWERING & response.keys():
        raise LookupError("no field of an answer")
    usage = _usage(response.get("usageMetadata"))
    try:
        if (response.get("promptFeedback") or {}).get("blockReason"):
            return ModelAnswer("", usage, problem="Google blocks the request", is_refused=True)
        candidate = response["candidates"][0]
        end = candidate.get("finishReason")
        if end in REFUSING:
            return ModelAnswer("", usage, problem=f"Google blocks the answer: {end}", is_refused=True)
        parts = (candidate.get("content") or {}).get("parts") or []
        text = "".join(part.get("text") or "" for part in parts if not part.get("thought"))
    except (LookupError, AttributeError, TypeError):
        return ModelAnswer("", usage, problem="the answer has no candidate")
    is_cut = end == "MAX_TOKENS"
    return ModelAnswer(text, usage, is_cut, None if text or is_cut else "the answer has no text")


def _usage(given: object) -> Usage:
    """What is cached is part of what was asked; thoughts are paid for like what is said."""
    if not isinstance(given, Mapping):
        return Usage()
    thoughts = Usage.of_counts(0, 0, given.get("thoughtsTokenCount")).output
    usage = Usage.of_counts(
        given.get("promptTokenCount"),
        given.get("cachedContentTokenCount"),
        given.get("candidatesTokenCount"),
    )
    return usage._replace(output=usage.output + thoughts)
