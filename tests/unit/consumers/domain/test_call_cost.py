"""Cost of a call of a language model."""

import json
from dataclasses import dataclass

import pytest

from mnemon_consumers.domain.spending.calls import build_call_event, compute_cost, estimate_cost, find_price
from mnemon_contracts.settings.language_models import Price, Spending
from mnemon_contracts.subjects import build_memory_subject
from mnemon_infra.models import tokens
from mnemon_infra.models.language.port import BatchApi, ModelAnswer, ModelRequest, Usage

MILLION = 1_000_000
SPENDING = Spending(
    prices=(
        Price(model="gpt-4o", input=2.5, output=10),
        Price(model="gpt-4o-mini", input=0.15, output=0.6, cached=0.075),
        Price(model="gpt-4o-2024-05-13", input=5, output=15),
        Price(model="claude-sonnet-4", input=3, output=15, cached=0.3, batch=0.25),
    )
)


@pytest.mark.parametrize(
    ("usage", "in_batch", "usd"),
    [
        (Usage(input=MILLION), False, 0.15),
        (Usage(output=MILLION), False, 0.6),
        (Usage(input=MILLION, cached=MILLION), False, 0.075),
        (Usage(input=MILLION, cached=400_000, output=MILLION), False, 0.6 * 0.15 + 0.4 * 0.075 + 0.6),
        (Usage(input=MILLION, cached=400_000, output=MILLION), True, (0.6 * 0.15 + 0.4 * 0.075 + 0.6) / 2),
        (Usage(), False, 0.0),
        # Cached tokens beyond the input tokens are not charged.
        (Usage(input=100, cached=MILLION), False, 100 * 0.075 / MILLION),
    ],
)
def test_call_cost_follows_from_tokens_and_prices(usage: Usage, in_batch: bool, usd: float) -> None:
    assert compute_cost(usage, "gpt-4o-mini", SPENDING, in_batch=in_batch) == pytest.approx(usd)


def test_without_a_price_of_their_own_cached_tokens_cost_as_others_do() -> None:
    both = [Usage(input=MILLION), Usage(input=MILLION, cached=MILLION)]
    assert [compute_cost(usage, "gpt-4o", SPENDING, in_batch=False) for usage in both] == [2.5, 2.5]


def test_the_share_of_a_batch_is_that_of_the_model() -> None:
    assert compute_cost(Usage(input=MILLION), "claude-sonnet-4", SPENDING, in_batch=True) == pytest.approx(
        0.75
    )


@pytest.mark.parametrize(
    ("model", "priced_as"),
    [
        ("gpt-4o", "gpt-4o"),
        ("gpt-4o-2024-05-13", "gpt-4o-2024-05-13"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-latest", "gpt-4o"),
        ("gpt-4o-mini", "gpt-4o-mini"),
        ("gpt-4o-mini-2024-07-18", "gpt-4o-mini"),
        ("claude-sonnet-4-20250514", "claude-sonnet-4"),
        ("claude-sonnet-4@20250514", "claude-sonnet-4"),
        # Other models with other prices, although their names have the same beginning.
        ("gpt-4o-audio-preview", None),
        ("gpt-4o1", None),
        ("claude-sonnet-4-5-20250929", None),
        ("gpt-4", None),
        ("llama3.1:8b", None),
    ],
)
def test_a_revision_costs_what_the_model_does(model: str, priced_as: str | None) -> None:
    price = find_price(model, SPENDING.prices)
    assert (price.model if price else None) == priced_as


def test_event_of_a_call_has_its_tokens_and_cost() -> None:
    usage = Usage(input=1000, cached=200, output=50)
    line = build_call_event(("acme", "u1"), usage, "openai", "gpt-4o-mini", "extract", "b7", SPENDING, "e1")
    assert (line.subject, line.id) == (build_memory_subject("acme", "u1", "model.called"), "e1")
    assert json.loads(line.body) == {
        "provider": "openai",
        "model": "gpt-4o-mini",
        "purpose": "extract",
        "tokens": {"input": 1000, "cached": 200, "output": 50},
        "batch_id": "b7",
        "usd": pytest.approx((800 * 0.15 + 200 * 0.075 + 50 * 0.6) / MILLION / 2),
    }
    alone = build_call_event(("acme", "u1"), usage, "openai", "qwen3", "compact", None, SPENDING, "e2")
    assert json.loads(alone.body).keys() == {"provider", "model", "purpose", "tokens"}


@dataclass(frozen=True)
class PricedModel:
    """A model that is named, and never called."""

    model: str
    thinking_tokens: int = 0
    provider: str = "openai"
    batches: BatchApi | None = None

    async def complete(self, request: ModelRequest) -> ModelAnswer:
        raise AssertionError("the model is called")


def test_estimated_cost_is_of_the_request_and_the_longest_answer() -> None:
    spending = Spending(prices=(Price(model="m", input=1.0, output=2.0),))
    request = ModelRequest("extract", "Write.", "I like tea", most_tokens=1000)
    asked = tokens.count_tokens("Write.") + tokens.count_tokens("I like tea")
    online = (asked + 2 * 1000) / 1_000_000
    assert estimate_cost(request, PricedModel("m"), spending, in_batch=False) == pytest.approx(online)
    assert estimate_cost(request, PricedModel("m"), spending, in_batch=True) == pytest.approx(online / 2)
    assert estimate_cost(request, PricedModel("another"), spending, in_batch=False) == 0


def test_estimated_cost_includes_the_longest_thoughts() -> None:
    spending = Spending(prices=(Price(model="m", input=0.0, output=2.0),))
    request = ModelRequest("extract", "Write.", "I like tea", most_tokens=1000)
    cost = estimate_cost(request, PricedModel("m", thinking_tokens=8000), spending, in_batch=False)
    assert cost == pytest.approx(2 * 9000 / 1_000_000)
