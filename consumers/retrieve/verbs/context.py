"""`context`: what to put before a model."""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

from consumers.retrieve import decide
from consumers.retrieve.memory import Memory, Seen
from consumers.retrieve.verbs.asking import available, owner_of
from contracts.ask import ContextReplyV1, ContextV1, Reply
from contracts.subjects import Address
from infra.broker.service import Answer, Refusal
from infra.database.reading import ConversationView
from infra.settings.store import LiveSettings


class ContextVerb:
    """A user's memory as a model is shown it."""

    def __init__(self, memory: Memory, settings: LiveSettings) -> None:
        self._memory = memory
        self._settings = settings

    @property
    def answers(self) -> Mapping[str, Answer]:
        return {"context": self.context}

    def context(self, address: Address, body: bytes) -> Reply | Coroutine[Any, Any, Reply]:
        request = ContextV1.read(body or b"{}")
        if request.format != "messages":
            raise Refusal("not_implemented", f"format: {request.format!r} is not there yet, 'messages' is")
        if request.as_of is not None:
            raise Refusal("not_implemented", "as_of: memory of another moment is not there yet")
        owner = owner_of(address)
        settings = self._settings.of(address.tenant)
        wanted = request.conversation, settings.recent_messages, request.min_seq

        def reply(messages: Seen[ConversationView], profile: Seen[dict[str, Any]]) -> ContextReplyV1:
            return ContextReplyV1.model_construct(
                seen_seq=min(messages.seq, profile.seq),
                conversation=messages.value.conversation,
                messages=decide.context(
                    messages.value.messages, profile.value, settings.recent_messages, settings.time_stamps
                ),
                profile=profile.value,
                degraded=("budget",) if request.budget is not None else (),
            )

        async def read() -> Reply:
            return reply(
                *await asyncio.gather(
                    self._memory.messages(owner, *wanted), self._memory.profile(owner, request.min_seq)
                )
            )

        messages = self._memory.messages_at_hand(owner, *wanted)
        profile = self._memory.profile_at_hand(owner, request.min_seq)
        if messages is not None and profile is not None:
            return reply(messages, profile)
        return available(read())
