"""Common parts of the verbs: the current time, and errors of the servers."""

from collections.abc import Awaitable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import nats.errors

from mnemon_infra.broker.service import Refusal
from mnemon_infra.database.engine import DatabaseRefused, DatabaseUnavailable

ReplyValue = TypeVar("ReplyValue")

SERVER_ERRORS: Final = DatabaseUnavailable, nats.errors.Error, TimeoutError
"""Errors of a database or a log that does not answer now."""


def get_current_time() -> datetime:
    """Return the current time in UTC; facts that expire at or before it count as expired."""
    return datetime.now(UTC)


async def await_reply(reply: Coroutine[Any, Any, ReplyValue]) -> ReplyValue:
    """Await a reply; turn errors of the servers into refusals, retryable unless the database refused."""
    try:
        return await reply
    except DatabaseUnavailable as error:
        problem = f"the database cannot answer now: {error}; repeat the request later"
        raise Refusal("unavailable", problem, retryable=True) from error
    except (nats.errors.Error, TimeoutError) as error:
        problem = f"the log does not answer: {error!r}; repeat the request"
        raise Refusal("unavailable", problem, retryable=True) from error
    except DatabaseRefused as error:
        problem = f"the database refused a value of the request: {error}; change the value"
        raise Refusal("refused", problem) from error


@contextmanager
def forbid_repetition(kind: str, identifier: str) -> Iterator[None]:
    """Turn errors of the servers inside the block into a refusal that names an item added before the block.

    The log has the item already, and its id is not the caller's, so a repeated request would add another.

    Args:
        kind: what was added, such as `task`.
        identifier: its id.

    Raises:
        Refusal: the database or the log does not answer; it is not retryable.
    """
    try:
        yield
    except SERVER_ERRORS as error:
        problem = (
            f"the {kind} {identifier!r} is added, but the list cannot be read now: {error!r}; do not "
            f"repeat the request, list the {kind}s later"
        )
        raise Refusal("unavailable", problem) from error


async def await_visibility(read: Awaitable[object]) -> None:
    """Wait until later reads show a change. Errors are ignored, because the change is in the log already."""
    with suppress(DatabaseUnavailable, nats.errors.Error):
        await read
