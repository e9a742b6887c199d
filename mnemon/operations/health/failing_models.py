"""Language models that refuse or do not answer, and windows and conversations given up because of them."""

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from shlex import quote
from typing import Final

from nats.aio.client import Client
from pydantic import BaseModel, ConfigDict

from mnemon.display_text import format_count
from mnemon.operations.health.services import request_replies
from mnemon_consumers.model_reports import SUBJECT, parse_reports
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_contracts.streams import DEAD
from mnemon_contracts.subjects import decode_token
from mnemon_infra.broker.streams.stream_reader import read_stream
from mnemon_infra.models.language.circuit_breaker import FailingModel

TOLERATED_SILENCE: Final = timedelta(minutes=5)
"""Time without an answer after which a model is reported as a problem; a refusal is reported at once."""

GIVEN_UP_REASONS: Final = frozenset({"refused", "no_answer", "cut_off", "unreadable", "no_summary"})
"""Reasons of dead letters that a model has caused."""

_CONSUMERS: Final = ("extract", "compact")


class FailingModelState(BaseModel):
    """A model that refuses or does not answer, and the tenants whose settings name it.

    `tenants` lists only tenants with settings of their own or with unanswered windows.
    """

    model_config = ConfigDict(frozen=True)

    tenants: tuple[str, ...]
    model: str
    reason: str
    is_refused: bool
    since: datetime
    next_step: str

    @property
    def problem(self) -> str:
        whom = f" of {', '.join(self.tenants)}" if self.tenants else ""
        since = _format_time(self.since)
        return f"{self.model}{whom} has not answered since {since}: {self.reason}. {self.next_step}"


class GivenUpState(BaseModel):
    """Windows and conversations of one tenant that a consumer gave up because of one model and one reason.

    Only those that still have dead letters count.

    Attributes:
        model: name of the model; None for `compact`, whose dead letters do not name it.
        windows: number of these windows and conversations.
        since: time of the first of their dead letters.
    """

    model_config = ConfigDict(frozen=True)

    tenant: str
    consumer: str
    model: str | None
    reason: str
    windows: int
    since: datetime
    next_step: str

    @property
    def problem(self) -> str:
        asked = f"{self.model}, " if self.model else ""
        unit = "window" if self.consumer == "extract" else "conversation"
        return (
            f"{self.consumer} has given up {format_count(self.windows, unit)} of {self.tenant} since "
            f"{_format_time(self.since)} ({asked}{self.reason}). {self.next_step}"
        )


async def find_failing_models(
    connection: Client,
    tenants: Collection[str],
    settings_of: Callable[[str], SettingsV1],
    default: SettingsV1,
) -> tuple[FailingModelState, ...]:
    """Ask the processes that run consumers which models fail; return the failing models that settings name.

    A model that refuses is returned at once, any other model when it has failed for `TOLERATED_SILENCE`.

    Args:
        connection: the connection to NATS.
        tenants: tenants with settings of their own or with unanswered windows.
        settings_of: function that returns the settings of such a tenant.
        default: the settings of all other tenants.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    now = datetime.now(UTC)
    failing = parse_reports(await request_replies(connection, SUBJECT))
    found = []
    for each in failing:
        whose = tuple(tenant for tenant in sorted(tenants) if _is_named_by(settings_of(tenant), each))
        if not whose and not _is_named_by(default, each):
            continue
        if each.is_refused or now - each.since >= TOLERATED_SILENCE:
            found.append(_describe_failing(each, whose))
    return tuple(found)


async def count_given_up(connection: Client) -> tuple[GivenUpState, ...]:
    """Count the dead letters of windows and conversations by tenant, consumer, model and reason.

    Only letters with one of the `GIVEN_UP_REASONS` count.

    Raises:
        nats.errors.Error: the server does not answer, or has no stream of dead letters.
    """
    last = (await connection.jetstream().stream_info(DEAD)).state.last_seq
    since: dict[tuple[str, str, str | None, str], list[float]] = {}
    for consumer in _CONSUMERS:
        reading = read_stream(connection, DEAD, up_to=last, headers_only=True, subject=f"dead.{consumer}.>")
        async with aclosing(reading) as pages:
            async for page in pages:
                for message, delivery in page:
                    headers = message.headers or {}
                    reason, tenant = (
                        headers.get("Mnemon-Reason", ""),
                        _parse_tenant(headers.get("Mnemon-Subject", "")),
                    )
                    if reason in GIVEN_UP_REASONS and tenant is not None:
                        key = tenant, consumer, headers.get("Mnemon-Model"), reason
                        since.setdefault(key, []).append(delivery.stored_at)
    return tuple(
        GivenUpState(
            tenant=tenant,
            consumer=consumer,
            model=model,
            reason=reason,
            windows=len(moments),
            since=datetime.fromtimestamp(min(moments), UTC),
            next_step=_spell_next_step(tenant, consumer, reason),
        )
        for (tenant, consumer, model, reason), moments in sorted(since.items(), key=str)
    )


def describe_problems(
    failing: Iterable[FailingModelState], given_up: Iterable[GivenUpState]
) -> Iterator[str]:
    """Yield the problem of each failing model, and of each group of windows or conversations given up."""
    yield from (each.problem for each in failing)
    yield from (each.problem for each in given_up)


def _is_named_by(settings: SettingsV1, failing: FailingModel) -> bool:
    named = {failing.model, failing.setting}
    return any(
        each.enabled and each.provider == failing.provider and each.model in named
        for each in (settings.extraction, settings.compaction)
    )


def _describe_failing(each: FailingModel, tenants: tuple[str, ...]) -> FailingModelState:
    step = (
        "Correct the key, the address or the setting of the model. Pending work is kept and tried again "
        "every minute: docs/models.md#when-a-model-does-not-answer"
        if each.is_refused
        else "Pending work is kept, and the model is asked again automatically. Check the provider's status"
    )
    return FailingModelState(
        tenants=tenants,
        model=f"{each.provider}/{each.model or 'its default model'}",
        reason=each.error,
        is_refused=each.is_refused,
        since=each.since,
        next_step=step,
    )


def _spell_next_step(tenant: str, consumer: str, reason: str) -> str:
    filters = f"--consumer {consumer} --tenant {quote(tenant)} --reason {reason}"
    return f"See `mnemon dead list {filters}`; after a fix: `mnemon dead redrive --all {filters}`"


def _parse_tenant(subject: str) -> str | None:
    match subject.split("."):
        case ["memory", tenant, *_] | ["work", _, tenant, *_]:
            return decode_token(tenant)
    return None


def _format_time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} (UTC)"
