"""Provisioning creates streams, consumers and buckets as declared, and repairs drift."""

import pytest
from nats.aio.client import Client
from nats.js.api import ConsumerConfig, StreamConfig

from mnemon_contracts.streams import LOG
from mnemon_infra.broker.provisioning.topology import (
    TooFewServers,
    build_consumer_config,
    list_drift,
    provision,
    reset_durable,
)
from mnemon_infra.broker.streams.log_format import FORMAT, LogTooNew
from mnemon_infra.broker.streams.restored_log import UNFINISHED, RestoreUnfinished
from mnemon_infra.durables import DURABLES


async def test_provisioning_creates_everything_once(connection: Client) -> None:
    assert {change.action for change in await provision(connection)} == {"unchanged"}
    assert {change.action for change in await list_drift(connection)} == {"unchanged"}


async def test_drift_is_reported_and_repaired(connection: Client) -> None:
    stream_context = connection.jetstream()
    info = await stream_context.stream_info("LOG")
    await stream_context.update_stream(info.config.evolve(duplicate_window=10, max_age=86_400))
    consumer = (await stream_context.consumer_info("LOG", "persist")).config
    assert isinstance(consumer, ConsumerConfig)
    await stream_context.add_consumer("LOG", consumer.evolve(max_ack_pending=7))

    reported = {
        change.what: change for change in await list_drift(connection) if change.action != "unchanged"
    }
    assert reported.keys() == {"stream LOG", "consumer persist of LOG"}
    assert "duplicate_window" in reported["stream LOG"].detail
    assert "max_age" not in reported["stream LOG"].detail, "what we leave open is the operator's"
    assert "max_ack_pending: 7" in reported["consumer persist of LOG"].detail
    assert (await stream_context.stream_info("LOG")).config.duplicate_window == 10, "drift only reports"

    await provision(connection)
    mended: StreamConfig = (await stream_context.stream_info("LOG")).config
    assert (mended.duplicate_window, mended.max_age) == (120, 86_400)
    assert {change.action for change in await list_drift(connection)} == {"unchanged"}


async def test_a_consumer_with_a_new_filter_keeps_its_position(connection: Client) -> None:
    stream_context = connection.jetstream()
    await stream_context.delete_consumer("LOG", "dedupe")
    dedupe = build_consumer_config(DURABLES["dedupe"])
    assert dedupe.filter_subjects is not None
    proposed = dedupe.filter_subjects[0]
    await stream_context.add_consumer("LOG", dedupe.evolve(filter_subject=proposed, filter_subjects=None))
    await stream_context.publish("memory.acme.u1.fact.proposed.v1", b"{}")
    reader = await stream_context.pull_subscribe_bind(consumer="dedupe", stream="LOG")
    (message,) = await reader.fetch(1, 60)
    await message.ack_sync()
    assert {each.what for each in await list_drift(connection) if each.action != "unchanged"} == {
        "consumer dedupe of LOG"
    }
    await provision(connection)
    assert {each.action for each in await list_drift(connection)} == {"unchanged"}
    await stream_context.publish("memory.acme.u1.fact.compared.v1", b"{}")
    (message,) = await reader.fetch(1, 60)
    assert message.subject == "memory.acme.u1.fact.compared.v1"


@pytest.mark.parametrize(("mark", "error"), [(FORMAT, LogTooNew), (UNFINISHED, RestoreUnfinished)])
async def test_reset_of_a_consumer_is_refused_before_it_is_deleted(
    connection: Client, mark: str, error: type[Exception]
) -> None:
    stream_context = connection.jetstream()
    config = (await stream_context.stream_info(LOG)).config
    await stream_context.update_stream(config.evolve(metadata={**(config.metadata or {}), mark: "99"}))
    with pytest.raises(error):
        await reset_durable(connection, LOG, "index")
    assert {change.action for change in await list_drift(connection)} == {"unchanged"}
    await stream_context.update_stream(config)
    assert await reset_durable(connection, LOG, "index") == 0


async def test_a_single_server_refuses_three_replicas(connection: Client) -> None:
    with pytest.raises(TooFewServers, match="MNEMON_REPLICAS"):
        await provision(connection, replicas=3)
    reported = {
        change.what for change in await list_drift(connection, replicas=3) if change.action != "unchanged"
    }
    assert reported == {
        *("stream LOG", "stream WORK", "stream DEAD"),
        *("bucket settings", "bucket api_keys"),
    }
