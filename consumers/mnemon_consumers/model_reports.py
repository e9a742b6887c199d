"""Reports of failing language models: processes that call models answer the requests of `mnemon status`."""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from nats.aio.client import Client
from nats.aio.msg import Msg
from pydantic import TypeAdapter, ValidationError

from mnemon_infra.health.fault import Fault, describe_refusal
from mnemon_infra.models.language.circuit_breaker import CircuitBreaker, FailingModel
from mnemon_infra.models.refusals import EMBEDDING_REFUSALS
from mnemon_infra.telemetry.metrics import MODELS_FAILING

SUBJECT: Final = "$SRV.STATS.mnemon-models"
"""Subject of requests in core NATS, which each process that calls models answers."""

_REPORT: Final = TypeAdapter(list[FailingModel])

_reporters: list[CircuitBreaker] = []


@asynccontextmanager
async def answer_report_requests(connection: Client, circuit_breaker: CircuitBreaker) -> AsyncIterator[None]:
    """Answer requests for the list of failing models until the block ends.

    Until then, `measure_failing_models` and `list_refusals` also count the models of the circuit breaker.
    """

    async def send_report(message: Msg) -> None:
        await message.respond(_REPORT.dump_json(list(circuit_breaker.failing)))

    subscription = await connection.subscribe(SUBJECT, cb=send_report)
    _reporters.append(circuit_breaker)
    try:
        yield
    finally:
        _reporters.remove(circuit_breaker)
        await subscription.unsubscribe()


def parse_reports(replies: Iterable[bytes]) -> list[FailingModel]:
    """Return each failing model of all processes once, with the time and error of its earliest failure.

    A reply that cannot be parsed, such as one from a process of another version, is left out.
    """
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
    """Set the metric that counts the failing models of this process."""
    failing = _list_failing()
    for is_refused, kind in ((True, "refused"), (False, "unavailable")):
        MODELS_FAILING.set(sum(each.is_refused is is_refused for each in failing), kind)


def list_refusals() -> list[Fault]:
    """Return a fault for each model that this process cannot use before an operator corrects the cause.

    Such a model is a language model that refuses requests or is not configured, or an embedding model that
    refuses requests.
    """
    faults = [
        describe_refusal(
            f"{each.provider}/{each.model or 'its default model'}",
            each.error,
            "the settings `extraction.model` and `compaction.model`",
        )
        for each in _list_failing()
        if each.is_refused
    ]
    return faults + [
        describe_refusal(model, error, "the setting `embedding.model`")
        for model, error in EMBEDDING_REFUSALS.items()
    ]


def _list_failing() -> list[FailingModel]:
    """Return the failing models of this process, each once."""
    failing = {
        (each.provider, each.model): each
        for circuit_breaker in _reporters
        for each in circuit_breaker.failing
    }
    return list(failing.values())
