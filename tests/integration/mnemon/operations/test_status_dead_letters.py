"""`mnemon status` shows the number of dead letters, the age of the oldest one, and commands for them."""

from datetime import UTC, datetime, timedelta

import pytest
from nats.aio.client import Client

from mnemon.operations.health import dead_letters
from mnemon.operations.health.failing_models import count_given_up
from mnemon.operations.health.report import examine_deployment
from mnemon_contracts.streams import DEAD
from mnemon_contracts.subjects import encode_token
from mnemon_infra.config import Deployment


async def test_status_has_the_age_of_the_oldest_remaining_letter(
    connection: Client, deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dead_letters, "OLD_LETTER", timedelta())
    stream_context = connection.jetstream()
    assert (await examine_deployment(deployment)).broker.oldest_dead_letter is None

    first = await stream_context.publish("dead.persist.chat.acme.u1.-.message.v1", b"")
    begun = datetime.now(UTC)
    await stream_context.publish("dead.extract.memory.acme.u2.window.answered.v1", b"")
    await stream_context.delete_msg(DEAD, first.seq)
    health = await examine_deployment(deployment)

    assert health.broker.oldest_dead_letter is not None
    assert timedelta(seconds=-1) < health.broker.oldest_dead_letter - begun < timedelta(seconds=30)
    assert any(warning.startswith("dead letters kept: 1, the oldest since") for warning in health.warnings)


async def test_commands_for_windows_given_up_quote_the_tenant_for_a_shell(connection: Client) -> None:
    subject = f"memory.{encode_token('Tom & Co')}.u1.window.answered.v1"
    headers = {"Mnemon-Subject": subject, "Mnemon-Reason": "refused"}
    await connection.jetstream().publish(f"dead.extract.{subject}", b"", headers=headers)
    (given_up,) = await count_given_up(connection)
    filters = "--consumer extract --tenant 'Tom & Co' --reason refused"
    assert given_up.next_step == (
        f"See `mnemon dead list {filters}`; after a fix: `mnemon dead redrive --all {filters}`"
    )
