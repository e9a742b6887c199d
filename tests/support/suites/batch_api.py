"""Tests of the batches of every provider; a subclass for each provider opens the model."""

import logging
import time
import traceback
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from uuid import uuid4

import pytest

from mnemon_bench.provider_server.faults import Damage, HttpFault, LineOrder
from mnemon_bench.provider_server.server import ProviderServer
from mnemon_bench.provider_server.state import BatchLine
from mnemon_infra.models.language.port import (
    BatchApi,
    BatchProgress,
    BatchRequest,
    LanguageModel,
    LineFailed,
    ModelAnswer,
    ModelRefused,
    ModelUnavailable,
)
from tests.support.suites.language_model import KEY, LanguageSuite, asking, facts


def lines(batch_id: str, count: int) -> list[BatchRequest]:
    return [BatchRequest(f"{batch_id}-{number}", asking(f"I like thing {number}")) for number in range(count)]


def new_id() -> str:
    return uuid4().hex[:20]


def long_ago() -> datetime:
    return datetime.now(UTC) - timedelta(hours=1)


async def ended(batches: BatchApi, provider_id: str) -> BatchProgress:
    """Load the progress of a batch until the batch has ended, at most ten times, and return it."""
    for _ in range(10):
        if (progress := await batches.load_progress(provider_id)).state != "running":
            return progress
    raise AssertionError(f"it goes on: {progress}")


async def gather(batches: BatchApi, provider_id: str, into: dict[str, ModelAnswer | LineFailed]) -> None:
    """Add the results of a batch to `into` one by one, so that those before an error stay."""
    async for line_id, outcome in batches.read_results(provider_id):
        into |= {line_id: outcome}


async def outcomes(batches: BatchApi, provider_id: str) -> dict[str, ModelAnswer | LineFailed]:
    found = [result async for result in batches.read_results(provider_id)]
    by_line = dict(found)
    assert len(by_line) == len(found)
    return by_line


def answered(outcomes: Mapping[str, ModelAnswer | LineFailed]) -> set[str]:
    """Return the ids of the answered lines; assert that each has the answer to its own request."""
    ids = {line_id for line_id, outcome in outcomes.items() if isinstance(outcome, ModelAnswer)}
    for line_id in ids:
        assert facts(outcomes[line_id]) == [f"User likes thing {line_id.rpartition('-')[2]}"]
    return ids


class BatchesSuite(LanguageSuite):
    """Tests of batches.

    Attributes:
        creating: text in the method and path of the request that creates a batch, as for `HttpFault.path`.
    """

    creating: str

    def of_others(self) -> Mapping[str, Any]:
        """Return the fields of `ProviderBatch.given` that differ in a batch of another program."""
        return {}

    @pytest.fixture
    def batches(self, model: LanguageModel) -> BatchApi:
        assert model.batches is not None
        return model.batches

    @pytest.mark.parametrize("order", [pytest.param("as asked", marks=pytest.mark.long), "shuffled"])
    async def test_a_thousand_lines_are_answered_whatever_their_order(
        self, order: LineOrder, server: ProviderServer, batches: BatchApi
    ) -> None:
        server.state.faults.order = order
        batch_id = new_id()
        asked = lines(batch_id, 1000)
        provider_id = await batches.submit(batch_id, asked)
        assert (await batches.load_progress(provider_id)).state == "running"
        progress = await ended(batches, provider_id)
        assert (progress.state, progress.done, progress.error) == ("ended", 1000, None)
        found = await outcomes(batches, provider_id)
        assert answered(found) == {line.id for line in asked}
        assert server.state.asked == {line.request.text: 1 for line in asked}
        used = [outcome.usage for outcome in found.values() if isinstance(outcome, ModelAnswer)]
        assert sum(usage.input for usage in used) == server.state.used.input
        assert sum(usage.output for usage in used) == server.state.used.output

    async def test_deleted_batch_is_unknown(self, server: ProviderServer, batches: BatchApi) -> None:
        batch_id = new_id()
        provider_id = await batches.submit(batch_id, lines(batch_id, 3))
        server.state.delete_batches()
        assert await batches.load_progress(provider_id) == BatchProgress("unknown")
        await batches.cancel(provider_id)

    async def test_a_batch_that_runs_is_found(self, batches: BatchApi) -> None:
        batch_id = new_id()
        provider_id = await batches.submit(batch_id, lines(batch_id, 3))
        assert await batches.find(batch_id, 3, long_ago()) == provider_id

    async def test_a_batch_is_found_by_its_own_id_only(self, batches: BatchApi) -> None:
        ids = [(stem := new_id()), f"{stem}1", new_id()]
        submitted = {batch_id: await batches.submit(batch_id, lines(batch_id, 3)) for batch_id in ids}
        for provider_id in submitted.values():
            await ended(batches, provider_id)
        found = {batch_id: await batches.find(batch_id, 3, long_ago()) for batch_id in ids}
        assert found == submitted
        assert await batches.find(new_id(), 3, long_ago()) is None

    async def test_a_batch_is_found_behind_many_and_not_from_before_its_time(
        self, server: ProviderServer, batches: BatchApi
    ) -> None:
        batch_id = new_id()
        provider_id = await batches.submit(batch_id, lines(batch_id, 2))
        await ended(batches, provider_id)
        (batch,) = server.state.list_batches()
        for number in range(250):
            asked = [BatchLine(f"theirs-{number}", batch.lines[0].question)]
            server.state.create_batch(batch.format, asked, {**batch.given, **self.of_others()})
        assert await batches.find(batch_id, 2, long_ago()) == provider_id
        batch.created_at = time.time() - 86_400
        assert await batches.find(batch_id, 2, long_ago()) is None
        assert await batches.find(batch_id, 2, long_ago() - timedelta(days=2)) == provider_id

    async def test_a_batch_is_there_once_though_its_answer_was_lost(self, server: ProviderServer) -> None:
        batch_id = new_id()
        async with self.opened(server, model_timeout=2.0) as model:
            assert model.batches is not None
            server.state.faults.requests.extend([HttpFault(seconds=60, path=self.creating)] * 10)
            with pytest.raises(ModelUnavailable):
                await model.batches.submit(batch_id, lines(batch_id, 3))
            server.state.faults.requests.clear()
            assert len(server.state.list_batches()) == 1

    async def test_a_batch_that_could_not_be_made_is_told_and_made_later(
        self, server: ProviderServer, batches: BatchApi
    ) -> None:
        batch_id = new_id()
        server.state.faults.requests.extend([HttpFault(500, path=self.creating)] * 10)
        with pytest.raises(ModelUnavailable) as raised:
            await batches.submit(batch_id, lines(batch_id, 3))
        assert not isinstance(raised.value, ModelRefused)
        server.state.faults.requests.clear()
        assert await batches.find(batch_id, 3, long_ago()) is None
        provider_id = await batches.submit(batch_id, lines(batch_id, 3))
        await ended(batches, provider_id)
        assert len(answered(await outcomes(batches, provider_id))) == 3
        assert set(server.state.asked.values()) == {1}

    @pytest.mark.parametrize(
        "damage",
        [
            "cut",
            "failed",
            *(pytest.param(each, marks=pytest.mark.long) for each in ("nameless", "hollow", "left out")),
        ],
    )
    async def test_broken_lines_spoil_no_others(
        self, damage: Damage, server: ProviderServer, batches: BatchApi
    ) -> None:
        broken = {f"I like thing {number}" for number in (0, 1, 250, 500, 999)}
        server.state.faults.damage = lambda text: damage if text in broken else None
        batch_id = new_id()
        asked = lines(batch_id, 1000)
        provider_id = await batches.submit(batch_id, asked)
        assert (await ended(batches, provider_id)).state == "ended"
        found = await outcomes(batches, provider_id)
        assert answered(found) == {line.id for line in asked if line.request.text not in broken}
        failed = {line_id: outcome for line_id, outcome in found.items() if isinstance(outcome, LineFailed)}
        assert failed.keys() <= {line.id for line in asked if line.request.text in broken}
        assert not any(outcome.is_refused for outcome in failed.values())
        assert damage != "failed" or len(failed) == 5

    async def test_an_answer_cut_short_says_so_in_a_batch_too(
        self, server: ProviderServer, batches: BatchApi
    ) -> None:
        server.state.faults.is_cut = lambda text: text == "I like thing 1"
        batch_id = new_id()
        provider_id = await batches.submit(batch_id, lines(batch_id, 3))
        await ended(batches, provider_id)
        found = await outcomes(batches, provider_id)
        cut = {
            line_id
            for line_id, outcome in found.items()
            if isinstance(outcome, ModelAnswer) and outcome.is_cut
        }
        assert cut == {f"{batch_id}-1"}

    @pytest.mark.parametrize("results", ["half", "dropped"])
    async def test_half_of_the_results_are_right_and_later_all_are_there(
        self, results: Literal["half", "dropped"], server: ProviderServer, batches: BatchApi
    ) -> None:
        batch_id = new_id()
        asked = lines(batch_id, 1000)
        provider_id = await batches.submit(batch_id, asked)
        await ended(batches, provider_id)
        server.state.faults.results = results
        found: dict[str, ModelAnswer | LineFailed] = {}
        with suppress(ModelUnavailable):
            await gather(batches, provider_id, found)
        assert 0 < len(answered(found)) < 1000
        assert found.keys() - answered(found) <= {line.id for line in asked}
        server.state.faults.results = "whole"
        assert answered(await outcomes(batches, provider_id)) == {line.id for line in asked}

    async def test_of_an_expired_batch_there_is_what_was_done(
        self, server: ProviderServer, batches: BatchApi
    ) -> None:
        server.state.faults.ending = "expired"
        batch_id = new_id()
        provider_id = await batches.submit(batch_id, lines(batch_id, 10))
        assert (await ended(batches, provider_id)).state == "ended"
        found = await outcomes(batches, provider_id)
        assert answered(found) == {f"{batch_id}-{number}" for number in range(5)}
        assert not any(outcome.is_refused for outcome in found.values() if isinstance(outcome, LineFailed))

    async def test_a_batch_that_fails_says_so(self, server: ProviderServer, batches: BatchApi) -> None:
        server.state.faults.ending = "failed"
        batch_id = new_id()
        provider_id = await batches.submit(batch_id, lines(batch_id, 10))
        progress = await ended(batches, provider_id)
        assert progress.state == "failed"
        assert KEY not in repr(progress)

    async def test_a_batch_is_cancelled_and_what_was_done_is_there(
        self, server: ProviderServer, batches: BatchApi
    ) -> None:
        batch_id = new_id()
        provider_id = await batches.submit(batch_id, lines(batch_id, 10))
        await batches.cancel(provider_id)
        assert (await ended(batches, provider_id)).state == "ended"
        assert len(answered(await outcomes(batches, provider_id))) == 5
        await batches.cancel(provider_id)
        assert sum(server.state.asked.values()) == 5

    async def test_a_key_that_is_refused_is_not_shown(
        self, server: ProviderServer, batches: BatchApi, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        server.state.key = "another"
        batch_id = new_id()
        with pytest.raises(ModelRefused, match="key") as raised:
            await batches.submit(batch_id, lines(batch_id, 1))
        assert KEY not in "".join(traceback.format_exception(raised.value)) + caplog.text + repr(batches)
