"""`erase`: remove a user or a conversation for good, with a receipt, or verify an erasure."""

from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any
from uuid import uuid4

from pydantic import JsonValue

from mnemon_consumers.retrieve.moving_tenant import describe_copy, holds_copy
from mnemon_consumers.retrieve.verbs.erasure.conversation import ConversationEraser
from mnemon_consumers.retrieve.verbs.erasure.receipt import (
    RegisteredEvent,
    count_matches_by_store,
    count_orphaned_points,
    count_stores,
    find_unfinished_stores,
    select_removed,
    wait_for_stores,
)
from mnemon_consumers.retrieve.verbs.request_context import await_reply
from mnemon_consumers.retrieve.verbs.user_log import UserLog
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.events.erasure import ALL_BEFORE, UserErasedV1
from mnemon_contracts.subjects import Address, Owner
from mnemon_contracts.verbs.ask import Reply
from mnemon_contracts.verbs.tools import EraseReplyV1, EraseV1
from mnemon_infra.broker.broker import Broker
from mnemon_infra.broker.erasure.scope import ErasedUser, build_full_erasure
from mnemon_infra.database.engine import Database
from mnemon_infra.database.erasure.erased_rows import (
    count_covered_rows,
    count_in_inactive_generations,
    list_provider_batches,
)
from mnemon_infra.database.erasure.users import Erasure, load_erasure
from mnemon_infra.database.locks import hold_lock
from mnemon_infra.settings.store import LiveSettings
from mnemon_infra.storage.erasure_register import ErasureRegister
from mnemon_infra.vectors.port import Collection, VectorsUnavailable
from mnemon_infra.vectors.vector_index import VectorIndex


class EraseVerb:
    """Answers `erase` for users, and passes conversations on to `ConversationEraser`."""

    def __init__(
        self,
        broker: Broker,
        log: UserLog,
        database: Database,
        vector_index: VectorIndex | None,
        register: ErasureRegister | None,
        settings: LiveSettings,
    ) -> None:
        self._broker = broker
        self._log = log
        self._database = database
        self._vector_index = vector_index
        self._register = register
        self._settings = settings

    def erase(self, address: Address, body: bytes) -> Coroutine[Any, Any, Reply]:
        return self._add_copy_warning(address, self._answer_request(address, body))

    async def _add_copy_warning(self, address: Address, pending: Awaitable[Reply]) -> Reply:
        residence = self._settings.get_residence(address.tenant)
        reply = await pending
        if residence is None or not holds_copy(residence):
            return reply
        return reply.model_copy(update={"warnings": (describe_copy(residence),)})

    def _answer_request(self, address: Address, body: bytes) -> Coroutine[Any, Any, Reply]:
        request = EraseV1.parse(body or b"{}")
        if request.text is not None and not request.verify:
            raise InvalidBody("text", "the field is valid only with `verify`; set `verify`, or omit `text`")
        if request.conversation is not None:
            eraser = ConversationEraser(
                self._broker.connection, self._log, self._database, self._vector_index, self._register
            )
            if request.verify:
                return await_reply(
                    eraser.verify_conversation(address.owner, request.conversation, request.text)
                )
            return await_reply(eraser.erase_conversation(address, request.conversation))
        return await_reply(
            self._verify_erasure(address.owner, request.text) if request.verify else self._erase_user(address)
        )

    async def _erase_user(self, address: Address) -> Reply:
        owner = address.owner
        counts = await self._count_contents(owner, None)
        batches = await self._database.run_query(list_provider_batches(build_full_erasure(owner)))
        inactive = await self._database.run_query(count_in_inactive_generations(build_full_erasure(owner)))
        # The lock keeps out decisions about the user, which would enter the log after the erasure.
        async with hold_lock(self._database, *owner):
            registered = RegisteredEvent(self._register, owner, str(uuid4()))
            event = UserErasedV1(up_to_seq=ALL_BEFORE)
            position = await self._log.publish_event(address, event, registered.event_id)
        left = await wait_for_stores(partial(self._find_unfinished_stores, registered, position))
        return EraseReplyV1(
            seen_seq=position,
            removed=select_removed(counts, left),
            pending=left,
            provider_batches=tuple(batches),
            generations=tuple(inactive),
        )

    async def _verify_erasure(self, owner: Owner, words: str | None) -> Reply:
        erased = await self._database.run_query(load_erasure(*owner))
        left = await self._count_contents(owner, erased)
        found = (
            await count_matches_by_store(self._broker.connection, self._database, owner, words)
            if words
            else None
        )
        return EraseReplyV1(seen_seq=erased.seq if erased else 0, left=left, found=found)

    async def _count_contents(self, owner: Owner, erased: Erasure | None) -> dict[str, JsonValue]:
        """Count by store the entries of a user that an erasure covers; all entries if `erased` is None.

        With an erasure, `vectors` counts only points whose rows are gone. `vectors` is absent if the vector
        store does not answer, or this process has no vector index.
        """
        scope = ErasedUser(owner, *erased[:2]) if erased else build_full_erasure(owner)
        below = scope.below
        rows = await self._database.run_query(count_covered_rows(scope))
        counts = await count_stores(self._broker.connection, self._database, scope, rows)
        with suppress(VectorsUnavailable):
            if self._vector_index is not None:
                counts["vectors"] = (
                    await count_orphaned_points(self._database, self._vector_index, owner, below)
                    if erased
                    else sum([await self._vector_index.vectors.count(each, owner) for each in Collection])
                )
        return counts

    async def _find_unfinished_stores(self, registered: RegisteredEvent, position: int) -> tuple[str, ...]:
        erased = await self._database.run_query(load_erasure(*registered.owner))
        is_settled = erased.is_settled if erased and erased.seq >= position else None
        return await find_unfinished_stores(self._broker.connection, registered, position, is_settled)
