"""Fields of a delivery in the reply subject, with a domain and without one."""

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from mnemon_infra.delivery import Delivery

POSITION = "LOG.persist.3.42.40.1800000000500000000.7"
REPLIES = [
    pytest.param(f"$JS.ACK.{POSITION}", id="no domain"),
    pytest.param(f"$JS.ACK.hub.ACCOUNTHASH.{POSITION}", id="a domain"),
    pytest.param(f"$JS.ACK.hub.ACCOUNTHASH.{POSITION}.random", id="a domain, and a token at the end"),
    pytest.param(f"$JS.ACK._.ACCOUNTHASH.{POSITION}.random", id="an account without a domain"),
]


@pytest.mark.parametrize("reply", REPLIES)
def test_delivery_has_position_and_count_of_deliveries(reply: str) -> None:
    message = Msg(Client(), "chat.acme.u1.-.message.v1", reply, b"{}")
    assert Delivery.from_message(message) == Delivery(
        "chat.acme.u1.-.message.v1", b"{}", None, "LOG", 42, 3, 1_800_000_000.5
    )


@pytest.mark.parametrize("reply", REPLIES)
def test_delivery_equals_metadata_of_nats_py(reply: str) -> None:
    message = Msg(Client(), "chat.acme.u1.-.message.v1", reply, b"{}")
    delivery, metadata = Delivery.from_message(message), message.metadata
    assert (delivery.stream, delivery.deliveries) == (metadata.stream, metadata.num_delivered)
    assert delivery.sequence == metadata.sequence.stream
    assert delivery.stored_at == pytest.approx(metadata.timestamp.timestamp())


def test_delivery_reads_headers() -> None:
    headers = {"Nats-Msg-Id": "m1", "traceparent": "00-1-2-01", "X-Bot": "b"}
    message = Msg(Client(), "chat.acme.u1.-.message.v1", f"$JS.ACK.{POSITION}", b"{}", headers)
    delivery = Delivery.from_message(message)
    assert (delivery.message_id, delivery.traceparent) == ("m1", "00-1-2-01")
