"""`profile`: return or set the user's data."""

from collections.abc import Coroutine
from typing import Any

from mnemon_consumers.retrieve.memory.memory import Memory
from mnemon_consumers.retrieve.verbs.request_context import await_reply
from mnemon_consumers.retrieve.verbs.user_log import UserLog
from mnemon_contracts.events.memory import ProfileSetV1
from mnemon_contracts.subjects import Address
from mnemon_contracts.verbs.ask import ProfileReplyV1, ProfileV1, Reply


class ProfileVerbs:
    """Answers `profile`: returns the user's data, or sets fields of it."""

    def __init__(self, memory: Memory, log: UserLog) -> None:
        self._memory = memory
        self._log = log

    def profile(self, address: Address, body: bytes) -> Coroutine[Any, Any, Reply]:
        request = ProfileV1.parse(body or b"{}")

        async def answer_request() -> Reply:
            min_seq = request.min_seq
            if request.fields:
                min_seq = await self._log.publish_event(address, ProfileSetV1(fields=request.fields))
            seen = await self._memory.load_profile(address.owner, min_seq)
            return ProfileReplyV1.model_construct(seen_seq=seen.seq, profile=seen.value)

        return await_reply(answer_request())
