"""Common parts of the verbs: the current time, ids of events, and errors of the servers."""

import asyncio
from collections.abc import Awaitable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from typing import Any, Final, TypeVar
from uuid import uuid4

import nats.errors

from mnemon_contracts.identity import derive_id
from mnemon_contracts.subjects import Address
from mnemon_infra.broker.service import Refusal, get_request_id
from mnemon_infra.database.engine import DatabaseRefused, DatabaseUnavailable

ReplyValue = TypeVar("ReplyValue")

CHECK_WAIT: Final = 0.5
"""Maximum seconds of a check before a change: the log accepts changes while the database does not answer."""

_SERVER_ERRORS: Final = DatabaseUnavailable, DatabaseRefused, nats.errors.Error, TimeoutError


def get_current_time() -> datetime:
    """Return the current time in UTC; facts that expire at or before it count as expired."""
    return datetime.now(UTC)


def identify_event(address: Address, *item: str) -> str:
    """Return the id of the event of a request: new, or derived from the id of the request if it has one.

    A request that is repeated with its id has the same event id, so its change is stored once. `item` is the
    id of the item that the request changes, if the request names one.
    """
    request_id = get_request_id()
    if request_id is None:
        return str(uuid4())
    return derive_id(address.tenant, address.user, address.name, request_id, *item)


async def await_reply(reply: Coroutine[Any, Any, ReplyValue]) -> ReplyValue:
    """Await a reply, and turn errors of the servers into refusals.

    Raises:
        Refusal: retryable if the database or the log does not answer; not retryable if the database refuses a
            value.
    """
    try:
        return await reply
    except DatabaseUnavailable as error:
        problem = f"the database cannot answer now: {error}; repeat the request later"
        raise Refusal("unavailable", problem, retryable=True) from error
    except (nats.errors.Error, TimeoutError) as error:
        problem = f"{_describe_log_error(error)}; repeat the request"
        raise Refusal("unavailable", problem, retryable=True) from error
    except DatabaseRefused as error:
        problem = f"{_describe_refused_value(error)}; change the value, or repeat the request later"
        raise Refusal("refused", problem) from error


@contextmanager
def report_unconfirmed_change(change: str, advice: str) -> Iterator[None]:
    """Turn errors of the servers inside the block into a refusal that is not retryable.

    The log may have the event of the change, and the same request again would make another change.

    Args:
        change: the change and its item, such as `the removal of the fact 'pf_001'`.
        advice: what the caller can do instead of repeating the request unchanged.

    Raises:
        Refusal: the database or the log does not answer, or the database refuses a value.
    """
    try:
        yield
    except DatabaseUnavailable as error:
        problem = f"{change} was not confirmed, because the database cannot answer now: {error}; {advice}"
        raise Refusal("unavailable", problem) from error
    except DatabaseRefused as error:
        problem = f"{change} was not confirmed, because {_describe_refused_value(error)}; {advice}"
        raise Refusal("unavailable", problem) from error
    except (nats.errors.Error, TimeoutError) as error:
        problem = f"{change} was not confirmed, because {_describe_log_error(error)}; {advice}"
        raise Refusal("unavailable", problem) from error


def report_unconfirmed_addition(
    kind: str, given: str | None, identifier: str
) -> AbstractContextManager[None]:
    """Return `report_unconfirmed_change` for an added item, such as a `task`.

    If a repeated request would give the item the same id, the context manager does nothing.

    Args:
        kind: kind of the item, as in the names of verb and field.
        given: the id that the body of the request has.
        identifier: id of the item.
    """
    if given is not None or get_request_id() is not None:
        return nullcontext()
    return report_unconfirmed_change(
        f"the addition of the {kind} {identifier!r}",
        f"list the {kind}s first, or repeat the request with this `{kind}_id`, because without it the "
        f"request may add a second {kind}",
    )


async def attempt_check(check: Awaitable[None]) -> None:
    """Run a check that may refuse a request.

    A check that an error of the servers ends, or that takes more than `CHECK_WAIT` seconds, refuses nothing.

    Raises:
        Refusal: the check refuses the request.
    """
    with suppress(*_SERVER_ERRORS):
        async with asyncio.timeout(CHECK_WAIT):
            await check


async def await_visibility(read: Awaitable[object]) -> None:
    """Wait until later reads show a change, by awaiting `read`, a read as of the position of the change.

    Errors of the servers end the wait, because the change is in the log already.
    """
    with suppress(*_SERVER_ERRORS):
        await read


def _describe_refused_value(error: DatabaseRefused) -> str:
    return (
        f"the database refused a value of the request, or of an event that `persist` has not stored: {error}"
    )


def _describe_log_error(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "the log did not answer in time"
    return f"the log does not answer: {error}"
