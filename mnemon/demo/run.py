"""Run of the demo: starts servers in a temporary folder, publishes the sample, and reads its memory."""

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from nats.js import JetStreamContext

from mnemon.demo.derived_memory import MODEL_CONSUMERS, derive_memory
from mnemon.demo.facts import collect_facts
from mnemon.demo.report import BotReplies, DemoReport, DuplicateMessage, RemovedMessages
from mnemon.demo.sample import ANNA, IVAN, LENA, USERS, SampleLine, read_sample
from mnemon.demo.view import DemoScreen
from mnemon_consumers.app import run_consumers
from mnemon_contracts.events.chat import ClearedV1, MessageV1, StartedV1
from mnemon_contracts.events.memory import ProfileSetV1
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import build_chat_subject
from mnemon_contracts.verbs.ask import MAX_HISTORY
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.dead_letters.listing import LetterFilter, read_letters
from mnemon_infra.broker.streams.applied_position import AppliedPosition, read_log_end
from mnemon_infra.config import Deployment
from mnemon_infra.durables import CONSUMERS
from mnemon_infra.embedded.stack import run_stack
from mnemon_infra.vectors.temporary_vectors import reserve_vectors
from mnemon_producers.client import MemoryClient
from mnemon_producers.events import ChatEvent
from mnemon_producers.publisher import Published
from mnemon_producers.timeouts import Timeouts

TENANT: Final = "demo"
CLEARED_CONVERSATION: Final = "сюрприз"
"""The conversation that Lena clears ("surprise")."""

FIRST_CONSUMERS: Final = tuple(name for name in CONSUMERS if name not in MODEL_CONSUMERS)
"""Consumers that run from the start; the consumers that ask a model run in a later part."""

MAX_RUN: Final = 20
"""Maximum number of messages published together."""

LOG_TIMEOUT: Final = 30.0
"""Seconds for a consumer to reach the end of the log after the last event is published."""

TIMEOUTS: Final = Timeouts(ask=30.0, save=30.0)
"""Timeouts of the demo's requests: its servers have just started, and a busy machine may take seconds."""


class LogNotReached(Exception):
    """A consumer did not reach the end of the log in time."""


async def run_demo(screen: DemoScreen, environment: Deployment, model: str | None = None) -> DemoReport:
    """Run the demo and return its report; also after an error, stop the servers and remove the folder.

    Only the model and the vectors of `environment`, the configuration by environment variables, are used:
    its servers may be production servers. `model` is a model of the OpenAI-compatible server at
    MNEMON_MODEL_URL or, without this variable, of OpenAI. None means built-in rules instead of a model.

    Raises:
        ServerFailed, NoAccount: a server does not start.
        VectorsUnavailable: the Qdrant server that the environment names does not answer.
        NotConnected, PublishFailed, AskFailed: mnemon does not answer.
        LogNotReached, NotDerived: a consumer does not finish in time.
    """
    report = DemoReport()
    with _measure_seconds(report, "total"):
        async with AsyncExitStack() as ends:
            folder = ends.enter_context(TemporaryDirectory(prefix="mnemon-demo-"))
            with _measure_seconds(report, "servers"):
                vectors = await ends.enter_async_context(reserve_vectors(environment, "mnemon_demo"))
                report.vectors = vectors.engine
                configured = Deployment.model_construct(
                    model_url=environment.model_url,
                    model_api_key=environment.model_api_key,
                    **vectors.configuration,
                )
                stack = await ends.enter_async_context(run_stack(Path(folder), configured))
            url = str(stack.deployment.nats_url)
            screen.report_start(
                ", ".join([*(server.title for server in stack.servers), f"vectors: {vectors.engine}"]),
                report.seconds["servers"],
            )
            with _measure_seconds(report, "consumers"):
                await ends.enter_async_context(run_consumers(FIRST_CONSUMERS, stack.deployment))
            screen.report_start(f"consumers {', '.join(FIRST_CONSUMERS)}", report.seconds["consumers"])
            client = MemoryClient.connect(url, tenant=TENANT, timeouts=TIMEOUTS)
            memory = await ends.enter_async_context(client)
            connection = await ends.enter_async_context(await connect(url, name="mnemon-demo"))
            demo = _Demo(memory, connection.jetstream(), screen, report)
            with _measure_seconds(report, "events"):
                await demo.publish_sample(read_sample())
            with _measure_seconds(report, "index"):
                await demo.wait_for_index()
            with _measure_seconds(report, "facts"):
                report.facts = await collect_facts(memory, connection.jetstream())
            with _measure_seconds(report, "questions"):
                await demo.collect_replies()
                report.dead_letters = [each async for each in read_letters(connection, LetterFilter())]
            with _measure_seconds(report, "learning"):
                report.derived = await derive_memory(connection, TENANT, stack.deployment, model)
    return report


class _Demo:
    """Steps of the demo: publishes the sample, waits until it is stored and indexed, and reads its memory."""

    def __init__(
        self, memory: MemoryClient, jetstream: JetStreamContext, screen: DemoScreen, report: DemoReport
    ) -> None:
        self._memory = memory
        self._jetstream = jetstream
        self._screen = screen
        self._report = report
        self._position = AppliedPosition()
        self._last_seq = 0
        self._is_over = False

    async def publish_sample(self, lines: Sequence[SampleLine]) -> None:
        """Publish the lines, and wait until all of them are persisted."""
        following = asyncio.create_task(self._report_persisted(expected=len(lines)))
        try:
            for run in split_into_runs(lines):
                self._last_seq = max(self._last_seq, await self._send_run(run))
                self._report.published += len(run)
                self._screen.report_published(self._report.published, of=len(lines))
            end = self._report.log_events = await read_log_end(self._jetstream)
            await self._wait_for_position(self._position, end, "persisted")
        finally:
            self._is_over = True
            await following

    async def wait_for_index(self) -> None:
        """Wait until all published events are indexed."""
        await self._wait_for_position(AppliedPosition("index"), self._report.log_events, "indexed")

    async def collect_replies(self) -> None:
        """Request the memory as a bot does, and put the replies into the report."""
        end = await read_log_end(self._jetstream)
        for user in USERS:
            self._report.kept[user] = (await self._memory.status(user, min_seq=end)).messages
        self._report.replies = BotReplies(
            context=(await self._memory.context(ANNA, min_seq=end)).messages,
            history=(await self._memory.history(IVAN, limit=8, min_seq=end)).messages,
            profile=(await self._memory.profile(IVAN, min_seq=end)).profile,
            cleared=(
                await self._memory.history(LENA, conversation=CLEARED_CONVERSATION, min_seq=end)
            ).messages,
        )

    async def _wait_for_position(self, position: AppliedPosition, end: int, done: str) -> None:
        if await position.wait_for(self._jetstream, end, LOG_TIMEOUT) < end:
            raise LogNotReached(
                f"{end - position.value} of {end} events were not {done} within {LOG_TIMEOUT:g} s; run the"
                " demo again when the machine is less busy"
            )

    async def _report_persisted(self, expected: int) -> None:
        while not self._is_over:
            reached = await self._position.wait_for(
                self._jetstream, self._position.value + 1, timeout_seconds=0.1
            )
            self._screen.report_persisted(reached, of=expected)

    async def _send_run(self, run: Sequence[SampleLine]) -> int:
        """Publish messages, or one line of another kind; return a log position that includes the lines."""
        line = run[0]
        match line.event:
            case bytes() as raw:
                subject = build_chat_subject(TENANT, line.user, line.conversation, "message")
                return int((await self._jetstream.publish(subject, raw, stream=LOG)).seq)
            case ProfileSetV1(fields=fields):
                self._report.profile_changes += 1
                return (await self._memory.set_profile(line.user, fields)).seen_seq
            case StartedV1():
                self._report.discarded.append(await self._remove_messages(line))
            case ClearedV1():
                self._report.cleared.append(await self._remove_messages(line))
            case MessageV1() as message:
                published = await self._publish_run(run)
                if published.duplicates:
                    self._report.duplicates.append(DuplicateMessage(str(message.id), message.content))
                return published.last_seq
        return self._last_seq

    async def _publish_run(self, run: Sequence[SampleLine]) -> Published:
        return await self._memory.publish_many(
            ChatEvent(line.user, line.event, line.conversation)
            for line in run
            if isinstance(line.event, MessageV1 | StartedV1 | ClearedV1)
        )

    async def _remove_messages(self, line: SampleLine) -> RemovedMessages:
        shown = await self._memory.history(
            line.user, limit=MAX_HISTORY, conversation=line.conversation, min_seq=self._last_seq
        )
        before = await self._memory.status(line.user, min_seq=self._last_seq)
        self._last_seq = (await self._publish_run([line])).last_seq
        after = await self._memory.status(line.user, min_seq=self._last_seq)
        return RemovedMessages(before.messages - after.messages, shown.messages)


def split_into_runs(lines: Iterable[SampleLine]) -> Iterator[list[SampleLine]]:
    """Split lines into runs of at most `MAX_RUN` consecutive messages; any other line is a run of its own.

    A message that repeats the id of an earlier message is also a run of its own: the server refuses a batch
    with a repeated id.
    """
    run: list[SampleLine] = []
    sent: set[str | None] = set()
    for line in lines:
        is_new = isinstance(line.event, MessageV1) and line.event.id not in sent
        if run and (not is_new or len(run) == MAX_RUN):
            yield run
            run = []
        run.append(line)
        if isinstance(line.event, MessageV1):
            sent.add(line.event.id)
        if not is_new:
            yield run
            run = []
    if run:
        yield run


@contextmanager
def _measure_seconds(report: DemoReport, part: str) -> Iterator[None]:
    begun = time.perf_counter()
    try:
        yield
    finally:
        report.seconds[part] = time.perf_counter() - begun
