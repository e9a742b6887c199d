"""Refusals of verbs describe errors of servers in words and name the next step."""

import nats.errors
import pytest

from mnemon_consumers.retrieve.verbs.request_context import await_reply, report_unconfirmed_change
from mnemon_infra.broker.service import Refusal
from mnemon_infra.database.engine import DatabaseRefused, DatabaseUnavailable

REFUSED_VALUE = "refused a value of the request, or of an event that `persist` has not stored"
REMOVAL = "the removal of the fact 'pf_001'"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (TimeoutError(), "the log did not answer in time"),
        (nats.errors.TimeoutError(), "the log did not answer in time"),
        (nats.errors.ConnectionClosedError(), "the log does not answer: nats: connection closed"),
        (DatabaseUnavailable("it restarts"), "the database cannot answer now: it restarts"),
        (
            DatabaseRefused("bad value"),
            f"the database {REFUSED_VALUE}: bad value",
        ),
    ],
)
async def test_unconfirmed_change_names_its_reason_and_the_next_step(error: Exception, reason: str) -> None:
    with pytest.raises(Refusal) as refused, report_unconfirmed_change(REMOVAL, "repeat it with this id"):
        raise error
    assert (refused.value.error.code, refused.value.error.retryable) == ("unavailable", False)
    assert str(refused.value) == f"{REMOVAL} was not confirmed, because {reason}; repeat it with this id"

    async def fail() -> None:
        raise error

    with pytest.raises(Refusal, match=reason):
        await await_reply(fail())
