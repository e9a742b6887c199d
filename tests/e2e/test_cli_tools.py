"""The commands for a user's facts, data, tasks and documents."""

import json
import re
from pathlib import Path

import nats

from tests.e2e.conftest import Finished, Up, mnemon


async def test_facts_data_tasks_and_documents(stack: Up, tmp_path: Path) -> None:
    assert stack.endpoints

    async def run(*arguments: str) -> Finished:
        return await mnemon(*arguments, "--tenant", "acme", "--user", "u1", "--data", stack.data)

    connection = await nats.connect(stack.endpoints.nats)
    fact = {"text": "Anna prefers trains", "tier": "profile", "expires_at": "2100-12-31T00:00:00Z"}
    body = {"fact_id": "pf_001", "fact": fact, "decision": {"proposal_id": "p1"}}
    await connection.jetstream().publish("memory.acme.u1.fact.saved.v1", json.dumps(body).encode())
    await connection.close()

    updated = await run("update", "pf_001", "--text", "Anna prefers night trains", "--importance", "high")
    line = "- [id:pf_001] [t:profile] [imp:high] [exp:2100-12-31] Anna prefers night trains"
    assert (updated.code, updated.out.splitlines()) == (0, [line, "  was: Anna prefers trains"]), updated.err
    assert (await run("read")).out.splitlines() == [line]
    assert [each["id"] for each in json.loads((await run("read", "--json")).out)["facts"]] == ["pf_001"]
    assert (await run("get", "pf_001")).out == updated.out

    forgotten = await run("forget", "pf_001")
    assert (forgotten.code, forgotten.out) == (0, "forgotten: pf_001\n")
    missing = await run("forget", "pf_001")
    assert (missing.code, "pf_001" in missing.err) == (1, True)
    assert (await run("read")).out == "no facts\n"
    wrong = await run("read", "--tier", "gold")
    assert (wrong.code, "tier" in wrong.err) == (2, True)

    assert (await run("profile", "name=Анна", "age=34")).out == "- age: 34\n- name: Анна\n"
    assert (await run("profile", "age=null")).out == "- name: Анна\n"

    added = await run("tasks", "add", "Buy tickets", "--due", "2030-01-02")
    found = re.fullmatch(r"- \[ \] \[id:(\S+)\] \[due:2030-01-02\] Buy tickets\n", added.out)
    assert found, added
    assert (await run("tasks", "done", found[1])).out.startswith("- [x]")
    assert (await run("tasks", "remove", found[1])).out == "no tasks\n"
    assert (await run("tasks", "done", found[1])).code == 1

    page = tmp_path / "faq.md"
    page.write_text("The office is open from nine.", encoding="utf-8")
    shown = await run("document", "add", str(page), "--id", "faq", "--collection", "office")
    assert shown.out == "- [id:faq] [in:office] faq.md\n"
    assert (await run("document", "list")).out == shown.out
    assert (await run("document", "remove", "faq")).out == "no documents\n"


async def test_tools_for_models() -> None:
    for form in ("openai", "anthropic", "google", "mcp"):
        shown = await mnemon("tools", "--format", form)
        assert shown.code == 0
        assert "memory_save" in json.dumps(json.loads(shown.out))
    assert (await mnemon("tools", "--format", "other")).code == 2
