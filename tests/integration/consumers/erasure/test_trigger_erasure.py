"""Erasure of triggers and of their dead letters; schedules and those of other users stay."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

from nats.aio.client import Client

from mnemon_contracts.streams import DEAD, WORK
from mnemon_contracts.subjects import build_schedule_subject, build_trigger_subject
from mnemon_infra.broker.erasure.purge import count_remaining_messages, purge_messages
from mnemon_infra.broker.erasure.scope import ErasedConversation, ErasedUser, ErasureScope
from mnemon_infra.broker.outcomes import Dead, settle_batch
from mnemon_infra.broker.streams.schedules import schedule_once
from mnemon_infra.broker.streams.triggers import (
    GivenUpWindow,
    build_given_up_window_subject,
    list_trigger_subjects,
)
from mnemon_infra.delivery import Delivery

OWNER = "acme", "u1"
OTHERS = ("acme", "u2"), ("globex", "u1"), ("acme", "u10")
SWEEPS = tuple(build_trigger_subject(consumer, *OWNER) for consumer in ("persist", "index"))


def of_conversation(owner: tuple[str, str], conversation: str) -> set[str]:
    """Return the triggers of a conversation."""
    return {
        build_trigger_subject("compact", *owner, conversation),
        build_given_up_window_subject(*owner, GivenUpWindow(conversation, 3, 5)),
        build_given_up_window_subject(*owner, GivenUpWindow(conversation, 7, 9)),
    }


def of_user(owner: tuple[str, str]) -> set[str]:
    """Return all triggers of a user, except those of sweeps after an erasure."""
    tokens = build_trigger_subject("extract", *owner), build_trigger_subject("dedupe", *owner)
    return {*tokens, *of_conversation(owner, "trip"), *of_conversation(owner, "home.1")}


async def leave(connection: Client, subjects: Iterable[str]) -> None:
    for subject in subjects:
        await connection.jetstream().publish(subject, b"", stream=WORK)


async def leave_schedule(connection: Client, owner: tuple[str, str]) -> str:
    subject = build_schedule_subject("extract", *owner)
    await schedule_once(
        connection, subject, datetime.now(UTC) + timedelta(days=1), build_trigger_subject("extract", *owner)
    )
    return subject


def erased_user() -> ErasureScope:
    return ErasedUser(OWNER, 100, datetime.now(UTC) + timedelta(minutes=1))


def erased_conversation(conversation: str) -> ErasureScope:
    at = datetime.now(UTC) + timedelta(minutes=1)
    return ErasedConversation(OWNER, conversation, 100, (), frozenset(), "gone", 100, at)


async def bury_all(connection: Client) -> set[str]:
    """Make dead letters of all waiting triggers; return the subjects of these triggers."""
    for durable in ("extract", "compact", "extract-batches", "dedupe-limits"):
        subscription = await connection.jetstream().pull_subscribe_bind(durable, WORK)
        config = (await connection.jetstream().consumer_info(WORK, durable)).config
        count = len(await list_trigger_subjects(connection, config.filter_subject or ">"))
        messages = await subscription.fetch(count, timeout=60) if count else []
        assert len(messages) == count
        dead = Dead("invalid_trigger", "an older version could not read it")
        await settle_batch(
            connection, durable, [(each, Delivery.from_message(each), dead) for each in messages]
        )
        await subscription.unsubscribe()
    return await letters_on(connection)


async def letters_on(connection: Client) -> set[str]:
    """Return the original subjects of the dead letters."""
    info = await connection.jetstream().stream_info(DEAD, subjects_filter=">")
    return {subject.split(".", 2)[2] for subject in info.state.subjects or {}}


async def test_user_erasure_purges_triggers_except_sweeps(connection: Client) -> None:
    kept = {*SWEEPS, "work.extract.17", "work.compact.17"}
    for other in OTHERS:
        kept |= of_user(other)
    await leave(connection, kept | of_user(OWNER))
    kept |= {await leave_schedule(connection, each) for each in (OWNER, *OTHERS)}
    left = await count_remaining_messages(connection, erased_user())

    assert await purge_messages(connection, erased_user())

    assert set(await list_trigger_subjects(connection, ">")) == kept
    assert left["work"] == len(of_user(OWNER))
    assert (await count_remaining_messages(connection, erased_user()))["work"] == 0


async def test_conversation_erasure_purges_its_triggers(connection: Client) -> None:
    gone = of_conversation(OWNER, "home.1")
    kept = {*SWEEPS, *of_user(OWNER)} - gone
    for other in OTHERS:
        kept |= of_user(other)
    await leave(connection, kept | gone)
    left = await count_remaining_messages(connection, erased_conversation("home.1"))

    assert await purge_messages(connection, erased_conversation("home.1"))

    assert set(await list_trigger_subjects(connection, ">")) == kept
    assert left["work"] == len(gone)


async def test_user_erasure_purges_dead_letters_of_triggers(connection: Client) -> None:
    kept = {subject for other in OTHERS for subject in of_user(other)}
    await leave(connection, kept | of_user(OWNER))
    assert await bury_all(connection) == kept | of_user(OWNER)
    left = await count_remaining_messages(connection, erased_user())

    assert await purge_messages(connection, erased_user())

    assert await letters_on(connection) == kept
    assert left["dead_letters"] == len(of_user(OWNER))


async def test_conversation_erasure_purges_dead_letters_of_triggers(connection: Client) -> None:
    gone = of_conversation(OWNER, "trip")
    await leave(connection, of_user(OWNER))
    await bury_all(connection)

    assert await purge_messages(connection, erased_conversation("trip"))

    assert await letters_on(connection) == of_user(OWNER) - gone


async def test_dead_letters_of_later_triggers_stay(connection: Client) -> None:
    await leave(connection, of_user(OWNER))
    buried = await bury_all(connection)
    early = datetime.now(UTC) - timedelta(days=1)
    user = ErasedUser(OWNER, 100, early)
    conversation = ErasedConversation(OWNER, "trip", 100, (), frozenset(), "gone", 100, early)
    for erased in (user, conversation):
        assert await purge_messages(connection, erased)
        assert await letters_on(connection) == buried
