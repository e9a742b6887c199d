"""Mixed load of a soak test: users talk, save, search and forget, and are erased one after the other."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from nats.aio.client import Client

from mnemon_bench.workloads.sentences import DIFFERENT, make_fact, make_question
from mnemon_consumers.maintain.handler import RETENTION
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_contracts.settings.language_models import Compaction, Extraction, Price, Spending
from mnemon_contracts.streams import LOG, WORK
from mnemon_contracts.subjects import build_chat_subject
from mnemon_infra.settings.store import write_settings
from mnemon_producers.client import MemoryClient
from mnemon_producers.errors import AskFailed, PublishFailed

TENANTS: Final = ("soak-a", "soak-b")
USERS: Final = 8
"""Number of users of each tenant."""

MODEL: Final = "soak-model"

IDLE_SECONDS: Final = 20.0
"""Setting `extraction.idle_seconds`: below the default, so that conversations are read more often."""

DOCUMENTS: Final = 3
"""Maximum number of documents of a user; every further document replaces one of them."""

SETTINGS_EVERY: Final = 200
"""Number of operations between two changes of the settings."""

RETENTION_EVERY: Final = 60.0
"""Seconds between two runs of retention; the schedule of `maintain` starts a run once an hour."""

Operation = Callable[[MemoryClient, str], Awaitable[object]]


class SoakLoad:
    """Mixed load: operations at a fixed rate, until cancelled.

    Each user is erased every `lifetime` seconds and begins again under the same name, so that the data folder
    has a bounded size. The erasures of different users are spread over the lifetime.

    Args:
        connection: connection to the deployment.
        rate: operations per second.
        lifetime: seconds from one erasure of a user until the next.

    Attributes:
        done: number of completed operations, by name.
        failed: number of operations that failed or were refused, by name.
    """

    def __init__(self, connection: Client, *, rate: float, lifetime: float) -> None:
        self.done: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self._connection = connection
        self._clients = {tenant: MemoryClient(connection, tenant=tenant) for tenant in TENANTS}
        self._owners = [(tenant, f"u{number}") for number in range(USERS) for tenant in TENANTS]
        self._rate = rate
        self._lifetime = lifetime
        self._random = random.Random(1)
        self._sentences = iter(lambda: self._random.randrange(DIFFERENT), None)
        self._operations: Mapping[str, tuple[int, Operation]] = {
            "exchange": (50, self._exchange_messages),
            "context": (18, self._request_context),
            "search": (8, self._search_memory),
            "save": (8, self._save_fact),
            "forget": (3, self._forget_fact),
            "profile": (2, self._set_profile),
            "task": (3, self._change_tasks),
            "document": (3, self._add_document),
            "start": (3, self._start_conversation),
            "clear": (1, self._clear_conversation),
            "unreadable": (1, self._publish_unreadable),
        }

    async def run(self) -> None:
        """Perform operations, erasures and retention until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._perform_operations(group))
            group.create_task(self._erase_in_turn())
            group.create_task(self._trigger_retention())

    async def configure(self, models: bool) -> None:
        """Write the settings; if `models` is true, a language model extracts facts and writes summaries."""
        await write_settings(self._connection, self._build_settings(models, self._random.randrange(8, 12)))

    def _build_settings(self, models: bool, recent: int) -> SettingsV1:
        self._has_models = models
        named = {"provider": "openai", "model": MODEL} if models else {}
        extraction = {"idle_seconds": IDLE_SECONDS, "pool_seconds": 30.0, **named}
        return SettingsV1(
            recent_messages=recent,
            extraction=Extraction.model_validate(extraction),
            compaction=Compaction.model_validate(named),
            spending=Spending(prices=(Price(model=MODEL, input=1.0, output=4.0),)),
        )

    async def _perform_operations(self, group: asyncio.TaskGroup) -> None:
        names, weights = list(self._operations), [weight for weight, _ in self._operations.values()]
        number = 0
        while True:
            (name,) = self._random.choices(names, weights)
            tenant, user = self._random.choice(self._owners)
            group.create_task(self._perform_operation(name, self._operations[name][1], tenant, user))
            number += 1
            if number % SETTINGS_EVERY == 0:
                await self.configure(self._has_models)
            await asyncio.sleep(1 / self._rate)

    async def _perform_operation(self, name: str, operation: Operation, tenant: str, user: str) -> None:
        try:
            await operation(self._clients[tenant], user)
        except (AskFailed, PublishFailed):
            self.failed[name] += 1
        else:
            self.done[name] += 1

    async def _erase_in_turn(self) -> None:
        while True:
            for tenant, user in self._owners:
                await asyncio.sleep(self._lifetime / len(self._owners))
                await self._perform_operation(
                    "erase", lambda memory, erased: memory.erase(erased), tenant, user
                )

    async def _trigger_retention(self) -> None:
        while True:
            await asyncio.sleep(RETENTION_EVERY)
            await self._connection.jetstream().publish(RETENTION, b"", stream=WORK)

    async def _exchange_messages(self, memory: MemoryClient, user: str) -> None:
        number = next(self._sentences)
        await memory.publish(user, "user", f"{make_fact(number)}. I like tea number {number}")
        await memory.publish(user, "assistant", make_question(number))

    async def _request_context(self, memory: MemoryClient, user: str) -> None:
        reply = await memory.context(user, query=make_question(next(self._sentences)))
        if reply.error:
            raise AskFailed(reply.error)

    async def _search_memory(self, memory: MemoryClient, user: str) -> None:
        await memory.search(user, make_question(next(self._sentences)))

    async def _save_fact(self, memory: MemoryClient, user: str) -> None:
        await memory.save(user, make_fact(next(self._sentences)))

    async def _forget_fact(self, memory: MemoryClient, user: str) -> None:
        known = await memory.read(user, limit=1)
        for fact in known.facts:
            await memory.forget(user, fact.id)

    async def _set_profile(self, memory: MemoryClient, user: str) -> None:
        await memory.set_profile(user, {"city": str(next(self._sentences))})

    async def _change_tasks(self, memory: MemoryClient, user: str) -> None:
        added = await memory.add_task(user, make_fact(next(self._sentences)))
        if added.task_id:
            await memory.remove_task(user, added.task_id)

    async def _add_document(self, memory: MemoryClient, user: str) -> None:
        text = "\n".join(make_fact(next(self._sentences)) for _ in range(20))
        await memory.add_document(user, text, document_id=f"d{self._random.randrange(DOCUMENTS)}")

    async def _start_conversation(self, memory: MemoryClient, user: str) -> None:
        await memory.start(user, discard_previous=self._random.random() < 0.3)

    async def _clear_conversation(self, memory: MemoryClient, user: str) -> None:
        await memory.clear(user)

    async def _publish_unreadable(self, memory: MemoryClient, user: str) -> None:
        """Publish an event that no consumer can read, which becomes a dead letter."""
        subject = build_chat_subject(self._random.choice(TENANTS), user, "-", "message")
        await self._connection.jetstream().publish(subject, b"{", stream=LOG)
