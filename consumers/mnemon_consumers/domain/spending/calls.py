"""Costs of model calls, and the events that record the calls. No I/O, no clock."""

import re
from collections.abc import Iterable
from typing import Final

from mnemon_contracts.events.memory import CallPurpose, ModelCalledV1, ModelCalledV2, Tokens
from mnemon_contracts.settings.language_models import Price, Spending
from mnemon_contracts.subjects import Owner, build_memory_subject
from mnemon_infra.broker.streams.log_writer import LogEvent
from mnemon_infra.models import tokens
from mnemon_infra.models.language.port import LanguageModel, ModelRequest, Usage

_PER: Final = 1_000_000
"""Number of tokens to which a price applies."""

# A date or a revision, as in gpt-4o-2024-08-06, claude-sonnet-4-20250514 and gemini-2.0-flash-001. One digit
# alone, or a word such as `mini`, makes it another model, with another price.
_REVISION: Final = re.compile(r"(?:[-@:](?:\d{2,}|latest|preview|exp))+")


def build_call_event(
    owner: Owner,
    usage: Usage,
    provider: str,
    model: str,
    purpose: CallPurpose,
    batch_id: str | None,
    spending: Spending,
    event_id: str,
) -> LogEvent:
    """Return the event of an answered call: its tokens, and their cost at the current prices.

    The event has the lowest version that allows the purpose, so that an older `persist` can read the event.

    Of several events with the same `event_id`, only one counts. `batch_id` is None for a single call.
    """
    version, contract = (2, ModelCalledV2) if purpose == "chat" else (1, ModelCalledV1)
    event = contract.create_strict(
        provider=provider,
        model=model,
        purpose=purpose,
        tokens=Tokens(input=usage.input, cached=usage.cached, output=usage.output),
        batch_id=batch_id,
        usd=compute_cost(usage, model, spending, in_batch=batch_id is not None),
    )
    return LogEvent(build_memory_subject(*owner, "model.called", version), event.encode_body(), event_id)


def compute_cost(usage: Usage, model: str, spending: Spending, *, in_batch: bool) -> float | None:
    """Return the cost of `usage` in US dollars; None if the model has no price.

    With `in_batch`, the factor of the price for batches applies.
    """
    price = find_price(model, spending.prices)
    if price is None:
        return None
    cached = min(usage.cached, usage.input)
    dollars = (
        (usage.input - cached) * price.input
        + cached * (price.input if price.cached is None else price.cached)
        + usage.output * price.output
    ) / _PER
    return dollars * price.batch if in_batch else dollars


def estimate_cost(
    request: ModelRequest, model: LanguageModel, spending: Spending, *, in_batch: bool
) -> float:
    """Return the cost of a request with the longest thoughts and answer, in US dollars.

    Return 0 if the model has no price.
    """
    if find_price(model.model, spending.prices) is None:
        return 0.0
    asked = tokens.count_tokens(request.instructions) + tokens.count_tokens(request.text)
    longest = Usage(asked, 0, request.most_tokens + model.thinking_tokens)
    return compute_cost(longest, model.model, spending, in_batch=in_batch) or 0.0


def find_price(model: str, prices: Iterable[Price]) -> Price | None:
    """Return the price set for `model`, or else for the longest name that `model` extends by a revision.

    For example, a price for `gpt-5-mini` also applies to `gpt-5-mini-2025-08-07`.

    Returns:
        None if the model has no price.
    """
    fitting = [price for price in prices if _is_revision(model, price.model)]
    return max(fitting, key=lambda price: len(price.model), default=None)


def _is_revision(model: str, named: str) -> bool:
    """Return whether `model` is the name `named`, alone or with a date or revision after it."""
    if not model.startswith(named):
        return False
    rest = model[len(named) :]
    return not rest or _REVISION.fullmatch(rest) is not None
