"""What every verb needs: whose request it is, when it is, and what to say of what cannot be reached."""

from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, TypeVar

import nats.errors

from mnemon_contracts.subjects import Address, Owner
from mnemon_infra.broker.service import Refusal
from mnemon_infra.database.engine import DatabaseRefused, DatabaseUnavailable

ReplyValue = TypeVar("ReplyValue")


def owner_of(address: Address) -> Owner:
    """The tenant and user that a request is about."""
    return address.tenant, address.user


def now() -> datetime:
    """What is due by then has expired."""
    return datetime.now(UTC)


async def available(reply: Coroutine[Any, Any, ReplyValue]) -> ReplyValue:
    """Say of what cannot be reached now that it may be reached later."""
    try:
        return await reply
    except DatabaseUnavailable as error:
        raise Refusal("unavailable", f"the database does not answer: {error}", retryable=True) from error
    except (nats.errors.Error, TimeoutError) as error:
        raise Refusal("unavailable", f"the log does not answer: {error!r}", retryable=True) from error
    except DatabaseRefused as error:
        raise Refusal("refused", f"the database does not take it: {error}") from error


async def to_be_found(read: Awaitable[object]) -> None:
    """Wait until a change can be read, for whoever reads next. It is made, even if it cannot be read now."""
    with suppress(DatabaseUnavailable, nats.errors.Error):
        await read
