"""Requests and answers of Google's models, the same online and in a batch."""

from collections.abc import Mapping
from typing import Any

from mnemon_infra.models.language.port import ModelAnswer, ModelRequest, Usage

REFUSING = frozenset({"SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"})
"""Values of `finishReason` with which a model refuses; it would refuse the same request again."""

ANSWERING = frozenset({"candidates", "promptFeedback", "usageMetadata"})
"""Fields of a response; any of them shows that a model has handled the request."""

THINKING = 8_000
"""Additional tokens of an answer for thoughts, which count towards Google's limit of the answer's length."""


def compute_token_limit(request: ModelRequest) -> int:
    """Return the maximum number of tokens of thoughts and answer together."""
    return request.most_tokens + THINKING


def parse_response(response: Mapping[str, Any]) -> ModelAnswer:
    """Parse a response. A response without text is an answer too, because the call costs money.

    Raises:
        LookupError, AttributeError, TypeError: the response is not an answer.
    """
    if not ANSWERING & response.keys():
        raise LookupError("the response has none of `candidates`, `promptFeedback` and `usageMetadata`")
    usage = _parse_usage(response.get("usageMetadata"))
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


def _parse_usage(given: object) -> Usage:
    """Return the usage. Cached tokens are part of the input, and thoughts are part of the output."""
    if not isinstance(given, Mapping):
        return Usage()
    thoughts = Usage.from_counts(0, 0, given.get("thoughtsTokenCount")).output
    usage = Usage.from_counts(
        given.get("promptTokenCount"),
        given.get("cachedContentTokenCount"),
        given.get("candidatesTokenCount"),
    )
    return usage._replace(output=usage.output + thoughts)
