"""`mnemon document add DIR`: a repository is indexed, changed and searched; hits name their lines."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client

from mnemon_consumers.app import run_consumers
from mnemon_infra.config import Deployment
from mnemon_infra.durables import CONSUMERS
from mnemon_producers.client import MemoryClient
from tests.support.patience import PATIENT
from tests.support.processes.stack import CommandResult, mnemon
from tests.support.servers.qdrant import locate_vectors
from tests.support.stock_client import Stock, indexed, persisted


async def asked(deployment: Deployment, *arguments: str | Path) -> CommandResult:
    return await mnemon(
        *arguments, "--tenant", "acme", "--user", "u1", MNEMON_NATS_URL=str(deployment.nats_url)
    )


async def added(deployment: Deployment, folder: Path, *options: str) -> dict[str, Any]:
    done = await asked(deployment, "document", "add", folder, "--json", *options)
    assert done.code == 0, done
    summary: dict[str, Any] = json.loads(done.out)
    return summary


def counts(summary: dict[str, Any]) -> tuple[int, ...]:
    return tuple(summary[each] for each in ("added", "changed", "unchanged", "removed"))


def repository(folder: Path) -> Path:
    filler = "".join(f"# line {number} of the preamble\n" for number in range(1, 60))
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "boiler.py").write_text(
        f"{filler}\n\ndef switch_boiler_off(lever):\n    lever.pull()\n"
    )
    (folder / "README.md").write_text("# Heating\n\nThe radiator thermostat is in the hall.\n")
    (folder / "secret.log").write_text("the boiler password is not for a search")
    (folder / "logo.png").write_bytes(b"\x89PNG\0\xff")
    (folder / ".gitignore").write_text("*.log\n")
    subprocess.run(("git", "-C", folder, "init", "--quiet"), check=True)
    return folder


@pytest.mark.long
async def test_repository_is_indexed_and_only_changes_are_sent_again(
    deployment: Deployment, connection: Client, tmp_path: Path
) -> None:
    with_vectors = locate_vectors(deployment, tmp_path / "vectors")
    heating, stock = repository(tmp_path / "heating"), Stock(connection)
    async with run_consumers(CONSUMERS, with_vectors):
        tried = await added(deployment, heating, "--dry-run")
        assert (counts(tried), tried["dry_run"]) == ((3, 0, 0, 0), True)
        assert (await stock.ask("document"))["documents"] == []

        first = await added(deployment, heating)
        assert counts(first) == (3, 0, 0, 0)
        assert (first["collection"], first["origin"]) == ("heating", "repository")
        assert first["left_out"] == {"binary": 1}
        await asked(deployment, "document", "add", heating / "README.md", "--collection", "by hand")
        await indexed(stock, first["seen_seq"])

        memory = MemoryClient(connection, tenant="acme", timeouts=PATIENT)
        found = await memory.call("u1", "search_repos", {"query": "switch boiler off", "limit": 1})
        (hit,) = found.model_dump()["hits"]
        assert hit["id"] == "heating/src/boiler.py"
        lines = (heating / "src" / "boiler.py").read_text().splitlines()
        shown = "\n".join(lines[hit["passage"]["first_line"] - 1 : hit["passage"]["last_line"]])
        assert "switch_boiler_off" in hit["text"]
        assert hit["text"].strip() in shown
        text = await asked(deployment, "search", "radiator thermostat", "--collection", "heating")
        assert "[documents:heating/README.md:1-3]" in text.out
        assert "by hand" not in text.out

        (heating / "src" / "boiler.py").unlink()
        (heating / "README.md").write_text("# Heating\n\nThe thermostat is in the cellar now.\n")
        (heating / "new.txt").write_text("The chimney is swept in May.")
        second = await added(deployment, heating)
        assert counts(second) == (1, 1, 1, 1)
        await indexed(stock, second["seen_seq"])
        third = await added(deployment, heating)
        assert counts(third) == (0, 0, 3, 0)
        assert third["seen_seq"] >= second["seen_seq"] > first["seen_seq"]
        for query, expected in (("cellar", True), ("boiler", False)):
            reply = await stock.ask("search", query=query, collection="heating", threshold=0.4)
            assert bool(reply["hits"]) is expected, reply


@pytest.mark.long
async def test_folder_of_same_name_removes_nothing_without_confirmation(
    deployment: Deployment, connection: Client, tmp_path: Path
) -> None:
    with_vectors = locate_vectors(deployment, tmp_path / "vectors")
    for place in ("one", "other"):
        (tmp_path / place / "docs").mkdir(parents=True)
        (tmp_path / place / "docs" / f"{place}.md").write_text(f"About {place}")
    async with run_consumers(CONSUMERS, with_vectors):
        first = await added(deployment, tmp_path / "one" / "docs")
        await persisted(connection, first["seen_seq"])
        refused = await asked(deployment, "document", "add", tmp_path / "other" / "docs")
        assert (refused.code, refused.out) == (1, "")
        assert "--collection NAME" in refused.err
        kept = await Stock(connection).ask("document")
        assert [each["document_id"] for each in kept["documents"]] == ["docs/one.md"]
        confirmed = await added(deployment, tmp_path / "other" / "docs", "--remove")
        assert counts(confirmed) == (1, 0, 0, 1)


@pytest.mark.long
async def test_option_of_single_file_is_refused_for_folder(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("Text")
    for arguments in ((tmp_path, "--id", "x"), (tmp_path / "a.md", "--dry-run")):
        done = await mnemon("document", "add", *arguments, "--tenant", "acme", "--user", "u1")
        assert (done.code, "folder" in done.err) == (2, True), done
