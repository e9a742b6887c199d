"""Time limits of a reranker, and its pause after a failure."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from mnemon_consumers.retrieve.search import hit_reranker
from mnemon_consumers.retrieve.search.hit_reranker import MARGIN, RERANKER_PAUSE, HitReranker
from mnemon_contracts.settings.groups import Retrieval
from mnemon_infra.models.reranker import RerankerUnavailable

OURS = Retrieval(reranker="ours", reranker_timeout_ms=200)
OTHER = Retrieval(reranker="other")


class _SwitchedReranker:
    """A reranker that fails while `is_on` is false. It records the time limit of each request in seconds."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.is_on = True

    async def score_texts(
        self, model: str, query: str, texts: Sequence[str], seconds: float
    ) -> Sequence[float]:
        self.seconds.append(seconds)
        if not self.is_on:
            raise RerankerUnavailable("no answer")
        return [0.5 for _ in texts]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(now=1000.0)
    monkeypatch.setattr(hit_reranker, "time", SimpleNamespace(monotonic=lambda: clock.now))
    return clock


async def test_failed_model_is_paused(clock: SimpleNamespace) -> None:
    model = _SwitchedReranker()
    reranker = HitReranker(model)
    model.is_on = False
    assert await reranker.score_texts("tea", ["a"], OURS, None) is None
    model.is_on = True
    clock.now += RERANKER_PAUSE - 1
    assert await reranker.score_texts("tea", ["a"], OURS, None) is None
    assert model.seconds == [0.2], "not asked during the pause"

    assert await reranker.score_texts("tea", ["a"], OTHER, None) == [0.5], "the pause is that of a model"
    clock.now += 1
    assert await reranker.score_texts("tea", ["a", "b"], OURS, None) == [0.5, 0.5]
    assert model.seconds == [0.2, 0.3, 0.2]


async def test_caller_gets_its_hits_before_it_stops_waiting(clock: SimpleNamespace) -> None:
    model = _SwitchedReranker()
    reranker = HitReranker(model)
    now = asyncio.get_running_loop().time()

    assert await reranker.score_texts("tea", ["a"], OURS, now + 60) == [0.5]
    assert await reranker.score_texts("tea", ["a"], OURS, now + MARGIN) is None
    assert model.seconds == [0.2], "not asked without time"

    model.is_on = False
    assert (
        await reranker.score_texts(
            "tea", ["a"], Retrieval(reranker="ours", reranker_timeout_ms=2000), now + 1.5
        )
        is None
    )
    assert model.seconds[1] < 1.5 - MARGIN
    model.is_on = True
    assert await reranker.score_texts("tea", ["a"], OURS, None) == [0.5], "no pause after less than its time"
