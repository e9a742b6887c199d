"""An invalid trigger of a sweep becomes a dead letter; an error within a sweep is raised and makes none."""

from unittest.mock import AsyncMock, Mock

import pytest

from mnemon_consumers.index import handler
from mnemon_consumers.index.handler import IndexConsumer
from mnemon_infra.broker.outcomes import Dead
from mnemon_infra.config import Deployment
from mnemon_infra.delivery import Delivery
from mnemon_infra.vectors.vector_index import VectorIndex


def trigger(subject: str, body: bytes = b"7") -> Delivery:
    return Delivery(subject, body, None, "WORK", 1, 1, 1.8e9)


@pytest.fixture
def consumer(monkeypatch: pytest.MonkeyPatch) -> IndexConsumer:
    monkeypatch.setattr(handler, "sweep_points", AsyncMock(side_effect=ValueError("a point without seq")))
    consumer = IndexConsumer(Mock(), VectorIndex(Mock(), None), Deployment(nats_url="nats://unused"))
    consumer.broker.connection = Mock()
    return consumer


async def test_invalid_trigger_of_a_sweep_is_dead(consumer: IndexConsumer) -> None:
    dead = await consumer.sweep_users([trigger("work.index.acme"), trigger("work.index.acme.u1", b"seven")])
    assert [isinstance(each, Dead) and each.reason for each in dead] == ["invalid_trigger"] * 2


async def test_error_within_a_sweep_makes_no_dead_letter(consumer: IndexConsumer) -> None:
    with pytest.raises(ValueError, match="a point without seq"):
        await consumer.sweep_users([trigger("work.index.acme.u1")])
