"""Commands for a user's facts, data, tasks and documents, with a running mnemon."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from nats.aio.client import Client
from typer.testing import CliRunner, Result

from mnemon.cli.app import app
from mnemon_infra.broker.streams.applied_position import read_log_end
from mnemon_infra.config import Deployment
from mnemon_infra.process.data_folder import Endpoints
from tests.support.stock_client import Stock, persisted

Run = Callable[..., Awaitable[Result]]


@pytest.fixture
def run(mnemon: Deployment, connection: Client) -> Run:
    """Return a function that waits until the log is persisted, and then runs a command for `u1` of `acme`."""

    async def run(*arguments: str) -> Result:
        whose = ("--tenant", "acme", "--user", "u1")
        environment = {"MNEMON_NATS_URL": str(mnemon.nats_url)}
        await persisted(connection, await read_log_end(connection.jetstream()))
        return await asyncio.to_thread(lambda: CliRunner().invoke(app, [*arguments, *whose], env=environment))

    return run


async def test_fact_commands_save_read_and_forget(run: Run, stock: Stock) -> None:
    fact = {"text": "Anna prefers trains", "tier": "profile", "expires_at": "2100-12-31T00:00:00Z"}
    body = {"fact_id": "pf_001", "fact": fact, "decision": {"proposal_id": "p1"}}
    await stock.publish("memory.acme.u1.fact.saved.v1", body)

    updated = await run("update", "pf_001", "--text", "Anna prefers night trains", "--importance", "high")
    line = "- [id:pf_001] [t:profile] [imp:high] [exp:2100-12-31] Anna prefers night trains"
    assert (updated.exit_code, updated.stdout.splitlines()) == (0, [line, "  was: Anna prefers trains"])
    assert (await run("read")).stdout.splitlines() == [line]
    assert [each["id"] for each in json.loads((await run("read", "--json")).stdout)["facts"]] == ["pf_001"]
    assert (await run("get", "pf_001")).stdout == updated.stdout
    number = await run("update", "pf_001", "--importance", "2", "--expires", "2101-01-01")
    assert number.stdout.startswith("- [id:pf_001] [t:profile] [imp:low] [exp:2101-01-01]")

    forgotten = await run("forget", "pf_001")
    first, second = forgotten.stdout.splitlines()
    assert (forgotten.exit_code, first) == (0, "forgotten: pf_001 Anna prefers night trains")
    options = "--kind user_fact --tier profile --importance 2 --expires 2101-01-01T00:00:00"
    restoring = f"mnemon save --tenant acme --user u1 {options} -- 'Anna prefers night trains'"
    assert second == f"  to restore it: {restoring}"
    missing = await run("forget", "pf_001")
    assert (missing.exit_code, "pf_001" in missing.stderr) == (1, True)
    assert (await run("read")).stdout == "no facts\n"


async def test_request_without_an_answer_has_one_next_step(nats_url: str) -> None:
    command = ["read", "--tenant", "acme", "--user", "u1"]
    ended = await asyncio.to_thread(
        lambda: CliRunner().invoke(app, command, env={"MNEMON_NATS_URL": nats_url})
    )
    assert ended.exit_code == 3
    assert ended.stderr == (
        "mnemon: unavailable: no process answers read; check with `mnemon status` that `retrieve` runs\n"
    )


async def test_request_without_an_answer_names_the_folder_of_the_stack(nats_url: str, tmp_path: Path) -> None:
    Endpoints(nats=nats_url, database="postgresql://postgres@127.0.0.1/mnemon").write(tmp_path)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "note.md").write_text("a note")
    for command in (["read"], ["document", "add", str(tmp_path / "notes")]):
        arguments = [*command, "--tenant", "acme", "--user", "u1", "--data", str(tmp_path)]
        ended = await asyncio.to_thread(CliRunner().invoke, app, arguments)
        assert ended.exit_code == 3
        assert ended.stderr.splitlines()[0].endswith(
            "check with `mnemon status` that `retrieve` runs. For this stack, add: --data " + str(tmp_path)
        )


async def test_read_shows_all_facts_and_says_where_it_does_not(run: Run, stock: Stock) -> None:
    for number in range(1, 121):
        body = {
            "fact_id": f"ar_{number:03}",
            "fact": {"text": f"Anna has read book {number}"},
            "decision": {"proposal_id": f"p{number}"},
        }
        await stock.publish("memory.acme.u1.fact.saved.v1", body)

    assert len((await run("read")).stdout.splitlines()) == 120
    whole = json.loads((await run("read", "--json")).stdout)
    assert (len(whole["facts"]), whole["total"], whole.get("next")) == (120, 120, None)
    part = await run("read", "--limit", "100")
    assert len(part.stdout.splitlines()) == 100
    assert "100 of 120 facts" in part.stderr


async def test_history_of_a_user_named_as_everywhere(run: Run, stock: Stock) -> None:
    await stock.say("I heard a violin")
    shown = await run("history")
    assert (shown.exit_code, shown.stdout.splitlines()[-1].endswith("I heard a violin")) == (0, True)
    twice = await run("history", "u1")
    assert (twice.exit_code, "--user u42" in twice.stderr) == (2, True)


async def test_a_fact_is_changed_by_words_that_name_it(run: Run, stock: Stock) -> None:
    for number, text in enumerate(("Likes green tea", "Likes green tea with milk", "Keeps bees"), 1):
        body = {
            "fact_id": f"ar_{number:03}",
            "fact": {"text": text},
            "decision": {"proposal_id": f"p{number}"},
        }
        await stock.publish("memory.acme.u1.fact.saved.v1", body)
    unclear = await run("update", "--query", "green tea", "--text", "Likes black tea")
    assert unclear.exit_code == 1
    # The output contains the log messages of the consumers too.
    offered = [line for line in unclear.stdout.splitlines() if line.startswith("- [")]
    assert [line.split("[")[2][:6] for line in offered] == ["ar_001", "ar_002"]
    assert "nothing was changed" in unclear.stderr
    clear = await run("update", "--query", "keeps bees", "--text", "Keeps three goats")
    assert clear.stdout.splitlines() == [
        "- [id:ar_003] [t:archive] [imp:normal] Keeps three goats",
        "  was: Keeps bees",
    ]
    assert (await run("update", "--text", "Keeps three goats")).exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("read", "--tier", "gold"), "tier"),
        (("forget",), "id"),
        (("update", "pf_001", "--importance", "huge"), "importance"),
        (("profile", "name"), "NAME=VALUE"),
        (("search", "tea", "--scope", "dreams"), "scope"),
        (("context", "--format", "poem"), "format"),
    ],
)
async def test_invalid_use_is_refused(run: Run, arguments: tuple[str, ...], named: str) -> None:
    refused = await run(*arguments)
    assert refused.exit_code == 2, refused.output
    assert named in refused.stderr


async def test_command_names_the_parts_it_could_not_search(run: Run) -> None:
    found = await run("search", "tea", "--scope", "memories", "--scope", "documents")
    # The output contains the log messages of the consumers too, because they run in this process.
    assert (found.exit_code, found.stdout.splitlines()[-1]) == (3, "nothing found")
    assert "memories, documents" in found.stderr


async def test_data_commands_set_and_remove_fields(run: Run) -> None:
    assert (await run("profile", "name=Анна", "age=34")).stdout == "- age: 34\n- name: Анна\n"
    assert (await run("profile", "age=null")).stdout == "- name: Анна\n"
    assert (await run("profile", "name=null")).stdout == "no data\n"


async def test_context_command_prints_the_context(run: Run) -> None:
    await run("profile", "name=Анна")
    shown = await run("context", "--format", "xml", "--budget", "100")
    assert (shown.exit_code, shown.stdout) == (0, "<user_data>\n- name: Анна\n</user_data>\n")
    assert re.search(r"^\d+ tokens: user_data \d+$", shown.stderr, re.MULTILINE)
    assert "missing: relevant, conversation" in shown.stderr, "there are no vectors here to search"
    assert (await run("context")).stdout.endswith("User data:\n            - name: Анна\n")
    context = json.loads((await run("context", "--query", "Who is it?", "--json")).stdout)
    assert context["messages"] == [{"role": "system", "content": "User data:\n- name: Анна"}]


async def test_tasks_are_added_listed_and_done(run: Run) -> None:
    added = await run("tasks", "add", "Buy tickets", "--due", "2030-01-02")
    found = re.fullmatch(r"- \[ \] \[id:(\S+)\] \[due:2030-01-02\] Buy tickets\n", added.stdout)
    assert found, added.output
    assert (await run("tasks", "list")).stdout == added.stdout
    assert (await run("tasks", "done", found[1])).stdout.startswith("- [x]")
    assert (await run("tasks", "remove", found[1])).stdout == "no tasks\n"
    assert (await run("tasks", "done", found[1])).exit_code == 1


async def test_documents_are_added_read_and_removed(run: Run, tmp_path: Path) -> None:
    page = tmp_path / "faq.md"
    page.write_text("The office is open from nine.", encoding="utf-8")
    shown = await run("document", "add", str(page), "--id", "faq", "--collection", "office")
    assert shown.stdout == "- [id:faq] [in:office] faq.md\n"
    assert (await run("document", "list")).stdout == shown.stdout
    assert (await run("get", "faq", "--scope", "documents")).stdout == "The office is open from nine.\n"
    assert (await run("document", "remove", "faq")).stdout == "no documents\n"
    page.write_bytes(b"\xff\xfe")
    refused = await run("document", "add", str(page))
    assert (refused.exit_code, str(page) in refused.stderr) == (2, True)


@pytest.mark.parametrize("form", ["openai", "anthropic", "google", "mcp"])
def test_tools_for_models(form: str) -> None:
    shown = CliRunner().invoke(app, ["tools", "--format", form])
    assert shown.exit_code == 0
    assert "memory_save" in json.dumps(json.loads(shown.stdout))
