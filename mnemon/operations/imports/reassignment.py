"""Erasure of a chat that was imported with a wrong assistant, before the chat is imported again."""

from typing import Final

from nats.aio.client import Client
from tenacity import AsyncRetrying, RetryError, retry_if_result, stop_after_delay, wait_fixed

from mnemon.operations.imports.records import Reassignment
from mnemon_contracts.events.chat import MessageV1, StartedV1
from mnemon_contracts.identity import derive_first_conversation, derive_started_conversation
from mnemon_contracts.subjects import Owner, build_conversation_filter, build_user_filters
from mnemon_infra.broker.streams.log_reader import read_last_position
from mnemon_infra.database.projections.logged_events import stream_events
from mnemon_producers.client import MemoryClient
from mnemon_producers.errors import AskFailed, PublishFailed

PAUSE: Final = 0.2
"""Seconds between two checks whether the log has removed a conversation."""

REMOVAL_TIMEOUT: Final = 60.0
"""Maximum seconds to wait until the log has removed a conversation."""


class NotReassigned(Exception):
    """The erasure of a chat has failed or has not ended; no message of the chat was imported again."""


async def erase_reassigned_chat(connection: Client, tenant: str, reassignment: Reassignment) -> list[str]:
    """Erase the conversation of a chat that an earlier import stored with other senders as user or assistant.

    The conversation is erased for each of `reassignment.users` that has such messages, so that the chat can
    be imported again. Facts that come from this conversation alone are erased with it. If another user gets
    the chat, the conversation that was current for the former user before becomes current again. A
    conversation that has, or may have, messages of another source is left unchanged.

    Returns:
        Sentences about erased and remaining conversations; empty if the chat is new or was imported with the
        same speakers.

    Raises:
        NotReassigned: `retrieve` does not answer or refuses, the log does not remove the conversation in
            time, or the start of the former conversation is not known to be stored.
        nats.errors.Error: the server does not answer.
    """
    done = []
    for user in sorted(reassignment.users):
        owner = tenant, user
        messages = await _load_messages(connection, owner, reassignment.conversation)
        if not any(_has_other_speaker(message, user, reassignment) for message in messages.values()):
            continue
        where = f"conversation {reassignment.conversation!r} of user {user!r}"
        # Messages on `-` may belong to this conversation: an erasure would remove them, too.
        on_current = await read_last_position(connection, build_conversation_filter(*owner, None))
        is_mixed = any(not str(message.id).startswith(reassignment.ids) for message in messages.values())
        if is_mixed or on_current > min(messages):
            done.append(
                f"{where} was imported with other speakers, but may have messages of other sources: left "
                "unchanged"
            )
            continue
        former = None
        if user != reassignment.user:
            former = await _find_former_conversation(connection, owner, reassignment.conversation)
        if former is not None:
            # The start precedes the erasure, after which a repeated import finds no messages of the chat. A
            # request that erases nothing comes first: if `retrieve` refuses it or does not answer, the
            # conversation stays current.
            await _request_erasure(connection, owner, reassignment.conversation, verify=True)
            await _start_conversation(connection, owner, former)
        await _erase_conversation(connection, owner, reassignment.conversation)
        done.append(
            f"{where} was imported with other speakers: it was erased and is imported again"
            + (f"; conversation {former!r} is current again" if former is not None else "")
        )
    return done


async def _load_messages(connection: Client, owner: Owner, conversation: str) -> dict[int, MessageV1]:
    """Return the messages whose subject names a conversation, by log position."""
    pattern = build_conversation_filter(*owner, conversation)
    return {
        logged.seq: logged.event.model_copy(update={"id": logged.id})
        async for logged in stream_events(connection, pattern)
        if isinstance(logged.event, MessageV1)
    }


def _has_other_speaker(message: MessageV1, user: str, reassignment: Reassignment) -> bool:
    telegram = (message.metadata or {}).get("telegram")
    sender = telegram.get("from_id") if isinstance(telegram, dict) else None
    is_assistant = str(sender) == reassignment.assistant
    return sender is not None and (user != reassignment.user or is_assistant != (message.role == "assistant"))


async def _find_former_conversation(connection: Client, owner: Owner, conversation: str) -> str | None:
    """Return the conversation that was current before `conversation` by the order of starts in the log.

    Return None if `conversation` is not current, or the user has no other conversation.
    """
    started: dict[str, None] = {}
    async for logged in stream_events(connection, build_user_filters(*owner)[0]):
        named = logged.address.conversation
        if isinstance(logged.event, StartedV1):
            begun = named or derive_started_conversation(*owner, logged.id)
            started.pop(begun, None)
        elif isinstance(logged.event, MessageV1) and (named or not started):
            begun = named or derive_first_conversation(*owner)
        else:
            continue
        started.setdefault(begun)
    *others, current = started
    return others[-1] if others and current == conversation else None


async def _start_conversation(connection: Client, owner: Owner, conversation: str) -> None:
    tenant, user = owner
    try:
        await MemoryClient(connection, tenant=tenant).start(user, conversation)
    except PublishFailed as failed:
        raise NotReassigned(
            f"conversation {conversation!r} of user {user!r} may not have become current: {failed}. Remove "
            "the cause, then import again"
        ) from failed


async def _erase_conversation(connection: Client, owner: Owner, conversation: str) -> None:
    await _request_erasure(connection, owner, conversation)
    waiting = AsyncRetrying(
        retry=retry_if_result(bool), stop=stop_after_delay(REMOVAL_TIMEOUT), wait=wait_fixed(PAUSE)
    )
    try:
        await waiting(read_last_position, connection, build_conversation_filter(*owner, conversation))
    except RetryError as error:
        raise NotReassigned(
            f"conversation {conversation!r} of user {owner[1]!r} is still being erased; import again in a "
            "minute"
        ) from error


async def _request_erasure(
    connection: Client, owner: Owner, conversation: str, *, verify: bool = False
) -> None:
    """Ask `retrieve` to erase a conversation; with `verify`, only to count what it would erase."""
    tenant, user = owner
    try:
        await MemoryClient(connection, tenant=tenant).erase(user, conversation=conversation, verify=verify)
    except AskFailed as failed:
        raise NotReassigned(
            f"conversation {conversation!r} of user {user!r} was imported with other speakers and could not "
            f"be erased: {failed}. Import again once `retrieve` answers; the import repeats the erasure"
        ) from failed
