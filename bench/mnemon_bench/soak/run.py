"""Soak test of a stack: mixed load for hours, samples in a file of JSON lines, and a trend of each series."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any, Final

import nats.errors

from mnemon_bench.provider_server.process import run_provider, use_provider
from mnemon_bench.soak.load import SoakLoad
from mnemon_bench.soak.samples import Sample, take_sample
from mnemon_bench.soak.trend import Trend, find_trends
from mnemon_bench.workers.processes import spawn_all_consumers
from mnemon_infra.broker.connection import connect_deployment
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database, DatabaseUnavailable

RATE: Final = 3.0
"""Operations per second. An operation is an exchange of two messages, a context, a search or similar."""

LIFETIMES: Final = 12
"""Number of times that each user is erased in a run; fewer times if erasures are slow."""

SAMPLES: Final = 240
"""Number of samples in a run, at equal intervals; samples that fail are left out."""

MODEL_SECONDS: Final = 0.2
"""Time that the model takes to answer, in seconds."""


async def run(
    deployment: Deployment,
    folder: Path,
    *,
    hours: float,
    samples: Path,
    rate: float = RATE,
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Run a mixed load against a stack, take samples, and return the trend of each series.

    The consumers run in two processes, as `mnemon up` has them.

    A local server takes the place of a provider of language models, so that the run has windows, batches and
    calls of models.

    Args:
        deployment: an empty stack that runs in `folder`, already provisioned and migrated.
        folder: the data folder of the stack.
        hours: duration of the load.
        samples: file to which each sample is written as soon as it is taken; a former file is replaced.
        rate: operations per second.
        report: called with lines about the progress.

    Returns:
        `ratios`: `growing_series`, the number of series that grow beyond their bound, with its maximum in
        `targets`. `growing`: the names of these series. `trends`: level, growth and bound of each series.
        `operations`: numbers of completed operations, by name. `failed`: numbers of operations that failed or
        were refused, by name.

    Raises:
        mnemon_bench.soak.trend.TooFewSamples: the run is too short, or NATS or the database did not answer.
        ExceptionGroup: an operation of the load failed with an error that `SoakLoad` does not count.
    """
    seconds = hours * 3600
    async with AsyncExitStack() as ends:
        url = await ends.enter_async_context(run_provider("--seconds", str(MODEL_SECONDS)))
        provider_deployment = use_provider(deployment, url)
        await ends.enter_async_context(spawn_all_consumers(provider_deployment))
        connection = await ends.enter_async_context(await connect_deployment(deployment, name="soak"))
        database = await ends.enter_async_context(Database(deployment, name="soak"))
        load = SoakLoad(connection, rate=rate, lifetime=seconds / LIFETIMES)
        await load.configure(models=True)
        begun = time.monotonic()
        running = asyncio.create_task(load.run(), name="load")
        taken: list[Sample] = []
        with samples.open("w") as lines:
            while time.monotonic() < begun + seconds:
                await asyncio.wait([running], timeout=seconds / SAMPLES)
                if running.done():
                    await running
                with suppress(DatabaseUnavailable, nats.errors.Error):
                    sample = await take_sample(connection, database, folder)
                    sample["seconds"] = round(time.monotonic() - begun, 1)
                    taken.append(sample)
                    lines.write(json.dumps({name: round(value, 2) for name, value in sample.items()}) + "\n")
                    lines.flush()
                done, failed = load.done.total(), load.failed.total()
                report(
                    f"{time.monotonic() - begun:,.0f} s: {done:,} operations, {failed:,} failed or refused"
                )
        running.cancel()
        await asyncio.wait([running])
    return make_figures(find_trends(taken)) | {"operations": load.done, "failed": load.failed}


def make_figures(trends: Sequence[Trend]) -> dict[str, Any]:
    """Return the number of growing series with its target, the names of these series, and all trends."""
    return {
        "ratios": {"growing_series": sum(trend.is_growing for trend in trends)},
        "targets": {"at_most": {"growing_series": 0}},
        "growing": [trend.name for trend in trends if trend.is_growing],
        "trends": {
            trend.name: {
                "level": round(trend.level, 2),
                "growth": round(trend.growth, 2),
                "bound": round(trend.bound, 2),
            }
            for trend in trends
        },
    }


def read_samples(path: Path) -> list[Mapping[str, float]]:
    """Read the samples from a file that `run` wrote."""
    return [json.loads(line) for line in path.read_text().splitlines()]
