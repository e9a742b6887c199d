"""Events of a moved tenant whose bodies no reader can parse."""

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from mnemon.operations.tenant_move.events import SourceEvent, build_moved_message, parse_source_event
from mnemon.operations.tenant_move.late_events import is_removal
from mnemon.operations.tenant_move.positions import PositionMap
from mnemon_contracts.identity import MESSAGE_ID
from mnemon_infra.delivery import MOVED, Delivery

UNREADABLE = b"{", b'{"id":"\xff"}', b"[" * 5000, b'{"x":' * 5000


def build_source_event(subject: str, body: bytes) -> SourceEvent:
    delivery = Delivery(subject, body, None, "LOG", 7, 1, 1.5)
    return parse_source_event(Msg(Client(), subject, data=body), delivery)


@pytest.mark.parametrize("body", UNREADABLE)
def test_unreadable_event_is_moved_as_it_is(body: bytes) -> None:
    event = build_source_event("chat.acme.u1.-.message.v1", body)
    moved = build_moved_message(event, PositionMap(), "move:")
    assert moved.body == body
    assert moved.headers == {MESSAGE_ID: "move:7", MOVED: "7:1500000000:LOG:7"}


@pytest.mark.parametrize("body", UNREADABLE)
def test_unreadable_start_removes_nothing(body: bytes) -> None:
    assert not is_removal(build_source_event("chat.acme.u1.-.started.v1", body))
