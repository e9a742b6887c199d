"""`profile`: return or set the user's data."""

from collections.abc import Coroutine, Mapping
from functools import partial
from typing import Any

import msgspec

from mnemon_consumers.retrieve.memory.memory import Memory
from mnemon_consumers.retrieve.verbs.request_context import attempt_check, await_reply, identify_event
from mnemon_consumers.retrieve.verbs.user_log import UserLog
from mnemon_contracts.events.memory import ProfileSetV1
from mnemon_contracts.subjects import Address
from mnemon_contracts.verbs.ask import ProfileReplyV1, ProfileV1, Reply
from mnemon_infra.broker.service import Refusal


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
                await attempt_check(self._check_size(address, request.fields))
                event = ProfileSetV1(fields=request.fields)
                min_seq = await self._log.publish_event(address, event, identify_event(address))
            seen = await self._memory.load_profile(address.owner, min_seq)
            return ProfileReplyV1.model_construct(seen_seq=seen.seq, profile=seen.value)

        return await_reply(answer_request())

    async def _check_size(self, address: Address, fields: Mapping[str, Any]) -> None:
        """Refuse fields that make the user's data exceed `UserLog.listing_limit`, before they are stored.

        Raises:
            Refusal: the user's data would exceed the limit.
        """
        size = await self._log.find_excess_size(
            partial(self._memory.load_profile, address.owner),
            _measure_fields,
            lambda known: _measure_fields({**known, **fields}),
        )
        if size is not None:
            problem = (
                f"the user's data would have {size:,} bytes, and the limit is {self._log.listing_limit:,}; "
                "set shorter values, or remove fields first, by the value null"
            )
            raise Refusal("refused", problem, field="fields")


def _measure_fields(fields: Mapping[str, Any]) -> int:
    return len(msgspec.json.encode({name: value for name, value in fields.items() if value is not None}))
