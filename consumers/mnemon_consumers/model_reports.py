"""Reports of failing language models, from the processes that call them to `mnemon status`."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from nats.aio.client import Client
from nats.aio.msg import Msg
from pydantic import TypeAdapter, ValidationError

from mnemon_infra.models.language.circuit_breaker import CircuitBreaker, FailingModel
from mnemon_infra.telemetry.metrics import MODELS_FAILING

SUBJECT: Final = "$SRV.STATS.mnemon-models"
"""Subject in core NATS to which each process that calls models replies."""

_REPORT: Final = TypeAdapter(list[FailingModel])

_reporters: list[CircuitBreaker] = []


@asynccontextmanager
async def answer_report_requests(connection: Client, circuit_breaker: CircuitBreaker) -> AsyncIterator[None]:
    """Answer requests for the failing models until the block ends.

    Args:
        connection: connection on which requests arrive.
        circuit_breaker: circuit breaker of the models.
    """

    async def reply(message: Msg) -> None:
        await message.respond(_REPORT.dump_json(list(circuit_breaker.failing)))

    subscription = await connection.subscribe(SUBJECT, cb=reply)
    _reporters.append(circuit_breaker)
    try:
        yield
    finally:
        _reporters.remove(circuit_breaker)
        await subscription.unsubscribe()


def parse_reports(replies: Iterable[bytes]) -> list[FailingModel]:
    """Merge the reports of all processes: each model once, with its earliest report."""
    first: dict[tuple[str, str | None], FailingModel] = {}
    for reply in replies:
        try:
            reported: Sequence[FailingModel] = _REPORT.validate_json(reply)
        except ValidationError:  # a process of another version
            continue
        for each in sorted(reported, key=lambda failing: failing.since):
            known = first.setdefault((each.provider, each.model), each)
            if each.since < known.since:
                first[each.provider, each.model] = each
    return list(first.values())


def measure_failing_models() -> None:
    """Set the metric for how many of the models that this process calls fail."""
    failing = {
        (each.provider, each.model): each
        for circuit_breaker in _reporters
        for each in circuit_breaker.failing
    }
    for is_refused, kind in ((True, "refused"), (False, "unavailable")):
        MODELS_FAILING.set(sum(each.is_refused is is_refused for each in failing.values()), kind)
