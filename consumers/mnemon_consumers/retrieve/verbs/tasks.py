"""`tasks`: list and change the tasks of the user. No context includes tasks."""

from collections.abc import Coroutine, Iterable, Sequence
from functools import partial
from typing import Any, Final

from mnemon_consumers.retrieve.memory.cache import PositionedValue
from mnemon_consumers.retrieve.memory.memory import Memory
from mnemon_consumers.retrieve.verbs.request_context import (
    attempt_check,
    await_reply,
    identify_event,
    report_unconfirmed_addition,
)
from mnemon_consumers.retrieve.verbs.user_log import UserLog
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.events.memory import TaskAddedV1, TaskDoneV1, TaskRemovedV1
from mnemon_contracts.subjects import Address
from mnemon_contracts.verbs.ask import Reply
from mnemon_contracts.verbs.tools import Task, TasksReplyV1, TasksV1
from mnemon_infra.broker.service import Refusal
from mnemon_infra.database.memory.tasks import StoredTask

TASK_BYTES: Final = 150
"""Approximate number of bytes of a task in a reply, besides its text."""


class TaskVerb:
    """Answers `tasks`: lists, adds, completes and removes the user's tasks."""

    def __init__(self, memory: Memory, log: UserLog) -> None:
        self._memory = memory
        self._log = log

    def tasks(self, address: Address, body: bytes) -> Coroutine[Any, Any, Reply]:
        request = TasksV1.parse(body or b"{}")
        match request.action:
            case "list":
                return await_reply(self._list_tasks(address, request.min_seq))
            case "add":
                return await_reply(self._add_task(address, request))
            case "done" | "remove":
                return await_reply(self._end_task(address, request))

    async def _list_tasks(self, address: Address, min_seq: int | None, task_id: str | None = None) -> Reply:
        seen: PositionedValue[list[StoredTask]] = await self._memory.load_tasks(address.owner, min_seq)
        tasks = tuple(
            Task.model_construct(task_id=task.id, text=task.text, due_at=task.due_at, done=task.done)
            for task in seen.value
        )
        return TasksReplyV1.model_construct(seen_seq=seen.seq, tasks=tasks, task_id=task_id)

    async def _add_task(self, address: Address, request: TasksV1) -> Reply:
        if not (request.text and request.text.strip()):
            raise InvalidBody("text", "the field is missing or blank; give the text of the task")
        event_id = identify_event(address)
        task_id = request.task_id or event_id
        event = TaskAddedV1(task_id=task_id, text=request.text, due_at=request.due_at)
        await attempt_check(self._check_size(address, event))
        with report_unconfirmed_addition("task", request.task_id, task_id):
            position = await self._log.publish_event(address, event, event_id)
            return await self._list_tasks(address, position, task_id)

    async def _check_size(self, address: Address, event: TaskAddedV1) -> None:
        """Refuse a task that makes the user's tasks exceed `UserLog.listing_limit`, before it is stored.

        Raises:
            Refusal: the user's tasks would exceed the limit.
        """

        def measure_changed(known: Sequence[StoredTask]) -> int:
            is_new = all(task.id != event.task_id for task in known)
            return _measure_tasks(known) + (len(event.encode_body()) if is_new else 0)

        size = await self._log.find_excess_size(
            partial(self._memory.load_tasks, address.owner), _measure_tasks, measure_changed
        )
        if size is not None:
            problem = (
                f"the user's tasks would have {size:,} bytes, and the limit is {self._log.listing_limit:,}; "
                "send a shorter text, or remove tasks first"
            )
            raise Refusal("refused", problem, field="text")

    async def _end_task(self, address: Address, request: TasksV1) -> Reply:
        if request.task_id is None:
            raise InvalidBody("task_id", "the field is missing; give the id of the task")
        seen = await self._memory.load_tasks(address.owner, await self._log.read_end())
        known = next((task for task in seen.value if task.id == request.task_id), None)
        if known is None:
            raise Refusal("not_found", f"there is no task {request.task_id!r}; list the tasks with `tasks`")
        position = seen.seq
        if request.action == "remove":
            position = await self._log.publish_event(address, TaskRemovedV1(task_id=known.id))
        elif not known.done:
            position = await self._log.publish_event(address, TaskDoneV1(task_id=known.id))
        return await self._list_tasks(address, position, known.id)


def _measure_tasks(tasks: Iterable[StoredTask]) -> int:
    return sum(TASK_BYTES + len(task.text.encode()) for task in tasks)
