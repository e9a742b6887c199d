"""The commands for facts: their output and exit codes."""

import json
import re
import shlex
from pathlib import Path

import pytest
from nats.aio.client import Client

from mnemon.cli.memory.facts import save, search
from mnemon_consumers.app import run_consumers
from mnemon_infra.broker.streams.applied_position import read_log_end
from mnemon_infra.config import Deployment
from mnemon_infra.durables import CONSUMERS
from mnemon_producers.tools import MemoryTools
from tests.support.processes.stack import CommandResult, mnemon
from tests.support.processes.terminal import run_at_terminal
from tests.support.servers.qdrant import locate_vectors
from tests.support.stock_client import Stock, indexed, persisted


async def asked(deployment: Deployment, *arguments: str) -> CommandResult:
    return await mnemon(
        *arguments, "--tenant", "acme", "--user", "u1", MNEMON_NATS_URL=str(deployment.nats_url)
    )


def quoted(documentation: str | None) -> str:
    """Return the text in double quotes with which an example begins."""
    found = re.search(r'(?:mnemon \w+|search\("u42",) "([^"]+)"', documentation or "")
    assert found
    return found[1]


async def test_refused_fact_exits_with_1_as_text_and_json(deployment: Deployment, tmp_path: Path) -> None:
    with_vectors = locate_vectors(deployment, tmp_path / "vectors")
    async with run_consumers(CONSUMERS, with_vectors):
        told = await asked(deployment, "save", "Is Anna allergic to nuts?")
        assert (told.code, told.out.startswith("rejected: "), told.err) == (1, True, "")
        as_json = await asked(deployment, "save", "Is Anna allergic to nuts?", "--json")
        assert (as_json.code, json.loads(as_json.out)["rule"]) == (1, "question")
        kept = await asked(deployment, "save", "Anna is allergic to nuts", "--json")
        assert (kept.code, json.loads(kept.out)["decision"]) == (0, "saved")


@pytest.mark.parametrize("form", [(), ("--json",)])
async def test_command_names_the_parts_it_could_not_search(
    deployment: Deployment, form: tuple[str, ...]
) -> None:
    async with run_consumers(("persist", "retrieve"), deployment):
        found = await asked(deployment, "search", "nuts", *form)
    assert found.code == 3
    assert found.err == "could not be searched: memories\n"
    if form:
        assert json.loads(found.out)["degraded"] == ["memories"]


async def test_search_example_finds_the_fact_of_the_save_example(
    deployment: Deployment, tmp_path: Path
) -> None:
    with_vectors = locate_vectors(deployment, tmp_path / "vectors")
    async with run_consumers(CONSUMERS, with_vectors):
        saved = json.loads((await asked(deployment, "save", quoted(save.__doc__), "--json")).out)
        position = ("--min-seq", str(saved["seen_seq"]))
        for documented in (search.__doc__, MemoryTools.search.__doc__):
            found = await asked(deployment, "search", quoted(documented), *position, "--json")
            assert [hit["text"] for hit in json.loads(found.out)["hits"]] == [quoted(save.__doc__)]
        for form in ((), ("--json",)):
            missed = await asked(deployment, "search", "sourdough", *form)
            assert (missed.code, missed.err) == (1, "")


async def test_search_without_hits_names_the_next_step(
    stock: Stock, deployment: Deployment, tmp_path: Path
) -> None:
    with_vectors = locate_vectors(deployment, tmp_path / "vectors")
    async with run_consumers(CONSUMERS, with_vectors):
        for content in ("Tom arrives on Friday", "We meet him at the station"):
            position = await stock.say(content)
        await indexed(stock, position)
        facts = await asked(deployment, "search", "When does Tom arrive?")
        assert (facts.code, facts.out) == (1, "nothing found\n")
        assert facts.err == "  Only facts were searched, and 2 messages are stored; add --scope messages\n"
        messages = await asked(deployment, "search", "When does Tom arrive?", "--scope", "messages")
        assert (messages.code, "Tom arrives on Friday" in messages.out) == (0, True)
        stranger = await mnemon(
            *("search", "When does Tom arrive?", "--tenant", "acme", "--user", "u2"),
            MNEMON_NATS_URL=str(deployment.nats_url),
        )
        assert stranger.code == 1
        assert stranger.err == (
            "  User 'u2' of tenant 'acme' has neither facts nor messages. "
            "Check the spelling: ids are the ones that bots use\n"
        )
        as_json = await asked(deployment, "search", "When does Tom arrive?", "--json")
        assert (as_json.code, as_json.err) == (1, "")


async def test_empty_query_is_wrong_use(deployment: Deployment) -> None:
    for query in ("", "  "):
        refused = await asked(deployment, "search", query)
        assert (refused.code, refused.out) == (2, "")
        assert refused.err == "mnemon: the query is empty\n  Give the words to search for\n"


@pytest.mark.parametrize("change", [("forget",), ("update", "--tier", "archive")])
async def test_words_in_place_of_an_id_are_refused_with_the_option_for_words(
    deployment: Deployment, change: tuple[str, ...]
) -> None:
    async with run_consumers(("persist", "retrieve"), deployment):
        refused = await asked(deployment, *change, "likes green tea")
    assert (refused.code, refused.out) == (1, "")
    assert refused.err.splitlines()[-1] == (
        "  List the ids: mnemon read --tenant acme --user u1. To name the fact by its words, replace the id: "
        "--query 'likes green tea'"
    )


async def test_words_in_place_of_an_id_show_the_facts_that_they_may_mean(
    deployment: Deployment, tmp_path: Path
) -> None:
    with_vectors = locate_vectors(deployment, tmp_path / "vectors")
    async with run_consumers(CONSUMERS, with_vectors):
        await asked(deployment, "save", "Anna likes green tea")
        await asked(deployment, "save", "Boris sells green tea in Perm")
        for change in (("forget",), ("update", "--tier", "archive")):
            refused = await asked(deployment, *change, "green tea")
            assert refused.code == 1
            assert {line.partition("] [")[2] for line in refused.out.splitlines()} == {
                "pf_001] Anna likes green tea",
                "ar_001] Boris sells green tea in Perm",
            }
            as_json = await asked(deployment, *change, "green tea", "--json")
            assert (as_json.code, as_json.out) == (1, "")

        unchanged = await asked(deployment, "update", "pf_001")
        assert (unchanged.code, "Anna likes green tea" in unchanged.out) == (0, True)

        several = await asked(
            deployment,
            *("update", "--query", "green tea", "--text", "Likes tea", "--importance", "high"),
            *("--expires", "2096-12-31T01:30:00+03:00"),
        )
    assert re.search(
        r"Change one by its id: mnemon update (pf|ar)_001 --text 'Likes tea' --importance high "
        r"--expires 2096-12-30T22:30:00 "
        r"--tenant acme --user u1$",
        several.err,
        re.MULTILINE,
    )


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (
            ("update", "tea", "Likes black tea"),
            "Give it as --text 'Likes black tea'. To name the fact by its words, replace the id: --query tea",
        ),
        (
            ("update", "green", "tea", "--text", "Likes black tea"),
            "To name the fact by its words, replace the id: --query 'green tea'",
        ),
        (("forget", "green", "tea"), "To name the fact by its words, replace the id: --query 'green tea'"),
        (
            ("update", "pf_001", "--text", "Likes", "black", "tea"),
            "Put the text in quotation marks: --text 'Likes black tea'.",
        ),
        (
            ("update", "tea", "--text", "Likes", "black", "tea"),
            (
                "Put the text in quotation marks: --text 'Likes black tea'. "
                "To name the fact by its words, replace the id: --query tea"
            ),
        ),
        (
            ("update", "--query", "tea", "--text", "Likes", "black", "tea"),
            "Put the text in quotation marks: --text 'Likes black tea'.",
        ),
        (("update", "--query", "tea", "Likes black tea"), "Give it as --text 'Likes black tea'."),
        (("update", "--query", "tea", "Likes", "black", "tea"), "Give it as --text 'Likes black tea'."),
        (
            ("update", "--query", "green", "tea", "--text", "Likes black tea"),
            "Put the words in quotation marks: --query 'green tea'",
        ),
        (("forget", "--query", "green", "tea"), "Put the words in quotation marks: --query 'green tea'"),
        (
            ("forget", "--query", "where", "I", "live"),
            "Put the words in quotation marks: --query 'where I live'",
        ),
        (("update", "pf_001", "Likes", "black", "tea"), "Give it as --text 'Likes black tea'."),
        (("forget", "pf_001", "pf_002"), "Name one fact per command: pf_001"),
    ],
)
async def test_further_arguments_are_refused_with_the_option_to_use(
    deployment: Deployment, arguments: tuple[str, ...], hint: str
) -> None:
    refused = await asked(deployment, *arguments)
    assert (refused.code, refused.out) == (2, "")
    assert refused.err.splitlines()[-1] == f"  {hint}"


@pytest.mark.long
async def test_ambiguous_forget_lists_candidates(
    deployment: Deployment, tmp_path: Path, connection: Client
) -> None:
    with_vectors = locate_vectors(deployment, tmp_path / "vectors")
    async with run_consumers(CONSUMERS, with_vectors):
        for text in ("Anna likes green tea at breakfast", "Boris sells green tea in Perm"):
            await asked(deployment, "save", text)
        await indexed(Stock(connection), await read_log_end(connection.jetstream()))

        told = await asked(deployment, "forget", "--query", "green tea")
        assert (told.code, len(told.out.splitlines())) == (1, 2)
        assert all("green tea" in line for line in told.out.splitlines())
        assert "nothing was forgotten" in told.err
        as_json = await asked(deployment, "forget", "--query", "green tea", "--json")
        candidates = json.loads(as_json.out)["candidates"]
        assert (as_json.code, len(candidates)) == (1, 2)

        answered = await run_with_answers(deployment, "0\n", "forget", "--query", "green tea")
        assert (answered.code, answered.out.strip()) == (1, "")
        answered = await run_with_answers(deployment, "9\n2\n", "forget", "--query", "green tea")
        assert answered.code == 0, answered.err
        gone = candidates[1]
        first, second = answered.out.strip().splitlines()
        assert first == f"forgotten: {gone['id']} {gone['text']}"
        restored = await mnemon(
            *shlex.split(second.partition(": mnemon ")[2]), MNEMON_NATS_URL=str(deployment.nats_url)
        )
        assert restored.out.startswith("saved: ")
        await persisted(connection, await read_log_end(connection.jetstream()))
        left = json.loads((await asked(deployment, "read", "--json")).out)["facts"]
        assert {fact["text"] for fact in left} == {each["text"] for each in candidates}


async def run_with_answers(deployment: Deployment, typed: str, *arguments: str) -> CommandResult:
    """Run a command whose standard input is a terminal, with the answers typed in advance."""
    options = ("--tenant", "acme", "--user", "u1")
    async with run_at_terminal(*arguments, *options, MNEMON_NATS_URL=str(deployment.nats_url)) as command:
        command.type(typed)
        return await command.await_end()


async def test_search_takes_a_memory_level_as_scope(
    deployment: Deployment, tmp_path: Path, connection: Client
) -> None:
    stock = Stock(connection)
    with_vectors = locate_vectors(deployment, tmp_path / "vectors")
    text = "Anna plans a trip to Lisbon."
    covers = {"conversation": "c", "from_seq": 1, "to_seq": 1}
    async with run_consumers(CONSUMERS, with_vectors):
        await stock.say("Let us fly to Lisbon", "acme.u1.c")
        written = {"summary_id": "s1", "text": text, **covers}
        await indexed(stock, await stock.publish("memory.acme.u1.summary.written.v1", written))

        found = await asked(deployment, "search", "Lisbon", "--scope", "medium")
        assert re.fullmatch(rf"- \[0\.\d+\] \[summaries:s1\] {text}\n", found.out)
        recent = await asked(
            deployment, "search", "Lisbon", "--scope", "short", "--conversation", "c", "--json"
        )
        assert [hit["text"] for hit in json.loads(recent.out)["hits"]] == ["Let us fly to Lisbon"]
        before = ("--preceding", "Where does Anna travel?", "--preceding", "To Lisbon")
        resolved = await asked(deployment, "search", "and when?", *before, "--scope", "medium", "--explain")
        assert text in resolved.out
        assert "preceding" in resolved.out
        later = await asked(deployment, "search", "Lisbon", "--scope", "medium", "--now", "2026-05-09 12:00")
        assert text in later.out
        wrong = await asked(deployment, "search", "Lisbon", "--now", "17")
        assert (wrong.code, "--now '17' is not a time" in wrong.err) == (2, True)
        whole = await asked(deployment, "get", "s1", "--scope", "summaries")
        assert whole.out.endswith(f"  messages at positions 1 to 1 of c  {text}\n")
        unknown = await asked(deployment, "search", "Lisbon", "--scope", "medium-rare")
        assert (unknown.code, unknown.out) == (2, "")
        assert unknown.err.startswith("mnemon: scope: ")
