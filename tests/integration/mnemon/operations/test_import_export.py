"""Export of memory and its import into another deployment, and import of other bots' tables."""

import io
import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from nats.aio.client import Client
from psycopg.sql import SQL, Identifier

from mnemon.demo.derived_memory import derive_memory
from mnemon.demo.facts import collect_facts
from mnemon.demo.run import CLEARED_CONVERSATION, FIRST_CONSUMERS, TENANT, split_into_runs
from mnemon.demo.sample import read_sample
from mnemon.operations.exports import jsonl, markdown
from mnemon.operations.exports.run import (
    ExportCounts,
    ExportFormat,
    wait_until_projected,
    write_memories,
)
from mnemon.operations.imports import run as bringing
from mnemon.operations.imports.jsonl import JsonLinesReader
from mnemon.operations.imports.markdown import MarkdownReader
from mnemon.operations.imports.normalised_files import get_backup_path, rewrite_files
from mnemon.operations.imports.postgres import RowReader
from mnemon.operations.imports.records import ImportRecord, IncomingEvent
from mnemon.operations.imports.report import ImportReport
from mnemon.operations.imports.run import RecordImporter
from mnemon_bench.workloads.all_events import fill_log
from mnemon_consumers.app import run_consumers
from mnemon_contracts.events.chat import ClearedV1, MessageV1, StartedV1
from mnemon_contracts.events.memory import ProfileSetV1
from mnemon_contracts.streams import LOG
from mnemon_contracts.subjects import build_event_filter
from mnemon_infra.broker.connection import connect
from mnemon_infra.broker.provisioning.topology import provision
from mnemon_infra.broker.streams.log_reader import read_last_position
from mnemon_infra.config import Deployment
from mnemon_infra.database.engine import Database
from mnemon_infra.database.messages.external_chats import (
    ChatLogs,
    ExternalChatsUnavailable,
    open_external_database,
    stream_messages,
)
from mnemon_infra.database.migration import migrate_schema
from mnemon_infra.embedded.nats_server import NatsServer
from mnemon_producers.client import MemoryClient
from mnemon_producers.events import ChatEvent
from tests.support.patience import PATIENT
from tests.support.servers.qdrant import locate_vectors
from tests.support.stock_client import Stock


class CutOff(Exception):
    """Ends an import in the middle, in place of a kill of its process."""


async def each(found: Iterable[ImportRecord], up_to: int | None = None) -> AsyncIterator[ImportRecord]:
    for number, one in enumerate(found):
        if number == up_to:
            raise CutOff
        yield one


async def bring(
    connection: Client, lines: list[str], up_to: int | None = None, **options: Any
) -> ImportReport:
    file = io.BytesIO("\n".join(lines).encode())
    report = ImportReport()
    importing = RecordImporter(connection, None, report, lambda _: None)
    await importing.import_records(each(JsonLinesReader(**options).read(file), up_to))
    return report


async def exported(
    connection: Client, deployment: Deployment, form: ExportFormat = jsonl.generate_lines
) -> list[str]:
    lines: list[str] = []
    written = ExportCounts(await wait_until_projected(connection))
    async with Database(deployment) as database:
        await write_memories(database, (None, None), form, lines.append, written, lambda _: None)
    assert written.lines == len(lines)
    return lines


async def say_the_sample(deployment: Deployment, connection: Client) -> None:
    """Publish the sample of `mnemon demo`, with a task and a document, and derive memory from it."""
    async with MemoryClient.connect(str(deployment.nats_url), tenant=TENANT, timeouts=PATIENT) as memory:
        for run in split_into_runs(read_sample()):
            for line in run:
                if isinstance(line.event, ProfileSetV1):
                    await memory.set_profile(line.user, line.event.fields)
            await memory.publish_many(
                ChatEvent(line.user, line.event, line.conversation)
                for line in run
                if isinstance(line.event, MessageV1 | StartedV1 | ClearedV1)
            )
        await collect_facts(memory, connection.jetstream())
        task = await memory.add_task("anna", "Call the bank")
        await memory.add_document("anna", "Tiles are fired at 1,240 degrees.")
        assert task.task_id
    await derive_memory(connection, TENANT, deployment, None)


def cleared() -> set[str]:
    """Return the ids, in quotes, of the messages before the clear in the sample's cleared conversation."""
    of_it = [line.event for line in read_sample() if line.conversation == CLEARED_CONVERSATION]
    (place,) = [number for number, event in enumerate(of_it) if isinstance(event, ClearedV1)]
    gone = {f'"{event.id}"' for event in of_it[:place] if isinstance(event, MessageV1)}
    assert gone
    return gone


@asynccontextmanager
async def another(
    tmp_path: Path, database_url: str, names: tuple[str, ...] = FIRST_CONSUMERS
) -> AsyncIterator[tuple[Deployment, Client]]:
    """Run consumers on an empty deployment with a NATS server of its own; yield it with a connection."""
    tmp_path.mkdir()
    server = NatsServer(tmp_path, None)
    await server.start()
    alone = Deployment(
        nats_url=server.url, database_dsn=database_url, database_schema=f"test_{uuid4().hex[:12]}"
    )
    deployment = locate_vectors(alone, tmp_path / "vectors")
    assert deployment.database_url is not None
    migrate_schema(deployment.database_url, deployment.database_schema)
    connection = await connect(server.url, name="test")
    await provision(connection)
    try:
        async with run_consumers(names, deployment):
            yield deployment, connection
    finally:
        await connection.close()
        await server.stop()


async def an_old_file_is_rewritten(connection: Client, deployment: Deployment, folder: Path) -> None:
    old = folder / "77.md"
    old.write_text("- Prefers to speak Russian\n- Is it so?\n\n## User data\n\n- city: Kazan\n")
    old.chmod(0o600)
    report = ImportReport()
    with old.open("rb") as file:
        found = each(list(MarkdownReader(TENANT).read(file)))
    await RecordImporter(connection, TENANT, report, lambda _: None).import_records(found)
    assert [(one.place, one.field) for one in report.first] == [("line 2", "text")]
    async with Database(deployment) as database:
        await rewrite_files(connection, database, {old: (TENANT, "77")})
    assert "- [id:pf_001] [t:profile] [imp:high] Prefers to speak Russian\n" in old.read_text()
    assert "- city: Kazan\n" in old.read_text()
    assert get_backup_path(old).read_text().startswith("- Prefers to speak Russian\n- Is it so?\n")
    assert [each.stat().st_mode & 0o777 for each in (old, get_backup_path(old))] == [0o600, 0o600]
    assert sorted(each.name for each in folder.iterdir() if each.name.startswith("77")) == [
        "77.md",
        "77.md.bak",
    ]


@pytest.mark.long
async def test_demo_memory_survives_export_and_import(
    deployment: Deployment,
    connection: Client,
    tmp_path: Path,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    located = locate_vectors(deployment, tmp_path / "vectors")
    async with run_consumers(FIRST_CONSUMERS, located):
        await say_the_sample(located, connection)
        await an_old_file_is_rewritten(connection, located, tmp_path)
        before = await exported(connection, located)
        known = await exported(connection, located, markdown.generate_lines)
    events = {json.loads(line)["event"] for line in before}
    assert events >= {
        "summary.merged.v1",
        "fact.updated.v1",
        "window.answered.v1",
        "cleared.v1",
        "task.added.v1",
    }
    assert not any(id_ in line for id_ in cleared() for line in before), "what was cleared stays here"

    monkeypatch.setattr(bringing, "BATCH", 100)
    async with another(tmp_path / "other", database_url) as (other, there):
        with pytest.raises(CutOff):
            await bring(there, before, up_to=250)
        begun = await bring(there, before)
        assert (begun.already_there, begun.published, begun.refused) == (200, len(before) - 200, 0)
        assert (await there.jetstream().stream_info(LOG)).state.messages == len(before), "nothing is doubled"
        assert await exported(there, other) == before
        await derive_memory(there, TENANT, other, None)
        assert await exported(there, other) == before
        assert await exported(there, other, markdown.generate_lines) == known
        assert await read_last_position(there, build_event_filter("model.called")) == 0, "no model was asked"

        again = await bring(there, [line for line in before if '"anna"' in line], user="anja")
        assert (again.already_there, again.refused) == (0, 0)
        others = [
            line.replace('"fact.saved.v1","body":{"id":"', '"fact.saved.v1","body":{"id":"x')
            for line in before
        ]
        conflicting = await bring(there, [line for line in others if "fact.saved" in line])
        assert {refused.field for refused in conflicting.first} == {"fact_id"}
        assert conflicting.published == 0


async def test_any_memory_is_restored_by_import(
    deployment: Deployment, connection: Client, tmp_path: Path, database_url: str
) -> None:
    async with run_consumers(("persist",), deployment):
        await fill_log(connection, 2000, seed=7, users=3)
        before = await exported(connection, deployment)
        known = await exported(connection, deployment, markdown.generate_lines)
    async with another(tmp_path / "other", database_url, ("persist",)) as (other, there):
        report = await bring(there, before)
        assert (report.published, report.refused) == (len(before), 0)
        assert await exported(there, other) == before
        assert await exported(there, other, markdown.generate_lines) == known


@pytest.mark.long
async def test_erased_user_is_absent_from_export_and_importable(
    mnemon: Deployment, connection: Client, stock: Stock
) -> None:
    assert mnemon
    await stock.say("Remember Vera", "acme.u1.-")
    call = {"name": "search", "type": "function", "arguments": {"for": None}}
    await stock.say("Remember Ivan", "acme.u2.-", id="named", tool_calls=[call], metadata={"a": None})
    await stock.say("Forget this", "acme.u2.c")
    await stock.publish("chat.acme.u2.c.cleared.v1")
    before = await exported(connection, mnemon)
    assert ["Vera" in before[0], "Ivan" in before[1], len(before)] == [True, True, 4]
    assert "LOG:" not in before[0], "its place in this log is no id in another"
    assert not any("Forget" in line for line in before)
    assert (await bring(connection, before)).published == 0, "all of it is there"

    for _ in range(2):  # in the second round the server remembers the ids of the first import
        assert "error" not in await stock.ask("erase", "acme.u2")
        assert await exported(connection, mnemon) == before[:1]
        assert (await bring(connection, before)).published == 3
        assert await exported(connection, mnemon) == before


CONVERSATIONS = """
    CREATE TABLE conversations (id uuid PRIMARY KEY, telegram_user_id integer, created_at timestamp);
    CREATE TABLE messages (
        id serial, conversation_id uuid, role varchar, content text, created_at timestamp
    );
    INSERT INTO conversations VALUES
        ('6f0d1f3a-4a53-4c0e-9d5b-0d0a3c0f7e11', 42, '2026-03-01 10:00'),
        ('6f0d1f3a-4a53-4c0e-9d5b-0d0a3c0f7e12', 42, '2026-03-02 10:00');
    INSERT INTO messages (conversation_id, role, content, created_at) VALUES
        ('6f0d1f3a-4a53-4c0e-9d5b-0d0a3c0f7e11', 'assistant', 'Hello', '2026-03-01 10:01'),
        ('6f0d1f3a-4a53-4c0e-9d5b-0d0a3c0f7e11', 'user', '[Текущее время: 2026-03-01 13:00] Hi',
         '2026-03-01 10:00');
"""

CHAT_LOGS = """
    CREATE TABLE chat_sessions (id integer, user_id text, memory jsonb);
    CREATE TABLE chat_logs (
        id serial, session_id integer, question text, response text, created_at timestamptz
    );
    INSERT INTO chat_sessions VALUES (1, 'anna', '{"key_facts": ["Prefers to speak Russian"]}');
    INSERT INTO chat_logs (session_id, question, response, created_at) VALUES
        (1, 'What was yesterday?', 'NQ was up by 0.8%.', '2026-03-01 10:00+03');
"""


async def test_import_reads_tables_of_other_bots(database_url: str) -> None:
    schema = f"other_{uuid4().hex[:12]}"
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as bot:
        await bot.execute(SQL("CREATE SCHEMA {}").format(Identifier(schema)))
        await bot.execute(SQL("SET search_path TO {}").format(Identifier(schema)))
        async with open_external_database(database_url) as empty:
            with pytest.raises(ExternalChatsUnavailable, match="there is no table"):
                await anext(stream_messages(empty, schema))
        await bot.execute(CONVERSATIONS)
        async with open_external_database(database_url) as tables:
            found: list[Any] = [
                one async for one in RowReader().read_conversations(stream_messages(tables, schema))
            ]
        events = [
            (one.user, getattr(one.event, "content", "")) for one in found if isinstance(one, IncomingEvent)
        ]
        assert events == [("42", ""), ("42", "Hi"), ("42", "Hello"), ("42", "")], (
            "each begins, also an empty one"
        )

        await bot.execute(CHAT_LOGS)
        async with open_external_database(database_url) as tables:
            logs = RowReader().read_chat_logs(await ChatLogs.inspect(tables, schema))
            found = [one async for one in logs]
        texts = [(one.user, getattr(one.event, "content", None) or one.event.text) for one in found]
        assert texts == [
            ("anna", "What was yesterday?"),
            ("anna", "NQ was up by 0.8%."),
            ("anna", "Prefers to speak Russian"),
        ]
        await bot.execute("ALTER TABLE chat_logs RENAME response TO answer")
        async with open_external_database(database_url) as tables:
            with pytest.raises(
                ExternalChatsUnavailable,
                match="has no column response; its columns are id, session_id, question, answer",
            ):
                await ChatLogs.inspect(tables, schema)
    with pytest.raises(ExternalChatsUnavailable, match="no connection"):
        async with open_external_database("postgresql://nobody@127.0.0.1:1/x"):
            pass
