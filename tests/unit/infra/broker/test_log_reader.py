"""An event has the same time whether a consumer delivers it or the log reader reads it."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st
from nats.aio.client import Client
from nats.aio.msg import Msg

from mnemon_infra.broker.streams.log_reader import parse_nanoseconds
from mnemon_infra.delivery import Delivery


@given(st.integers(min_value=10**18, max_value=4 * 10**18))
def test_a_header_and_a_reply_subject_give_the_same_time(nanoseconds: int) -> None:
    of_a_consumer = Delivery.from_message(Msg(Client(), reply=f"$JS.ACK.LOG.persist.1.2.3.{nanoseconds}.0"))
    seconds, fraction = divmod(nanoseconds, 10**9)
    # The server writes times in Go's format RFC3339Nano, which drops trailing zeros.
    ending = f".{fraction:09}".rstrip("0").rstrip(".")
    stamp = f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}{ending}Z"
    assert parse_nanoseconds(stamp) / 1e9 == of_a_consumer.stored_at
