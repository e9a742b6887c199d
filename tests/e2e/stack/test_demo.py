"""`mnemon demo`, run as by a new user."""

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Iterator
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import pytest

from mnemon.demo.facts import CONTEXT_BUDGET
from mnemon_bench.provider_server.server import ProviderServer
from mnemon_bench.provider_server.state import ProviderState
from tests.support.processes.stack import TIMEOUT, Up, mnemon
from tests.support.repository.code_blocks import blocks

README = Path(__file__).parents[3] / "README.md"


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a folder with a short path: `tmp_path` is too long for PostgreSQL's socket."""
    with TemporaryDirectory() as name:
        yield Path(name)


def environment(folder: Path) -> dict[str, str]:
    """Build the environment of a demo with configured servers, which do not answer and must not be used."""
    return {
        "TMPDIR": str(folder),
        "MNEMON_NATS_URL": "nats://127.0.0.1:1",
        "DATABASE_URL": "postgresql://127.0.0.1:1/precious",
        "PYTHONIOENCODING": "utf-8",
    }


async def start_demo(folder: Path, *arguments: str, **more: str) -> Process:
    complete = {**os.environ, **environment(folder), **more}
    command = (sys.executable, "-m", "mnemon", "demo", *arguments)
    return await asyncio.create_subprocess_exec(*command, env=complete, stdout=PIPE, stderr=PIPE)


def left_behind(folder: Path) -> list[str]:
    """Return the files in the folder, and the command lines of processes that name it."""
    processes = [
        " ".join(process.info["cmdline"])
        for process in psutil.process_iter(["cmdline"])
        if any(str(folder) in argument for argument in process.info["cmdline"] or ())
    ]
    return [*map(str, folder.rglob("*")), *processes]


@pytest.mark.long
async def test_demo_counts_match_the_sample(folder: Path) -> None:
    demo = await start_demo(folder, "--json")
    output, errors = await asyncio.wait_for(demo.communicate(), TIMEOUT)
    assert (demo.returncode, errors.decode()) == (0, "")

    numbers = json.loads(output)
    seconds = numbers.pop("seconds")
    parts = {"servers", "consumers", "events", "index", "facts", "questions", "learning", "total"}
    assert seconds.keys() == parts
    assert_facts(numbers.pop("facts"))
    assert_learned(numbers.pop("learned"))
    assert numbers.pop("vectors").startswith(("edge ", "qdrant "))
    reasons = [(letter["subject"], letter["reason"]) for letter in numbers.pop("dead_letters")]
    assert reasons == [
        ("chat.demo.иван.-.message.v1", "invalid_body"),
        ("chat.demo.lena.work.message.v1", "invalid_body"),
    ]
    assert numbers == {
        "published": 331,
        "log_events": 330,
        "ends": {
            "messages_kept": 290,
            "messages_discarded": 18,
            "messages_cleared": 10,
            "conversations_started": 1,
            "conversations_cleared": 1,
            "profile_changes": 8,
            "duplicates": 1,
            "dead_letters": 2,
        },
        "balanced": True,
        "messages_by_user": {"anna": 123, "иван": 127, "lena": 40},
    }
    assert left_behind(folder) == []


def assert_facts(facts: dict[str, Any]) -> None:
    outcomes = [(each["decision"], each.get("rule")) for each in facts["told"]]
    first = [
        *[("saved", None)] * 4,
        *(("rejected", rule) for rule in ("too_short", "question", "command", "secret")),
    ]
    anna = [("confirmed", None), ("updated", None), ("updated", None)]
    ivan = [("confirmed", None), ("confirmed", None), ("updated", None)]
    assert outcomes == [*first, *anna, *first, *ivan]

    assert facts["forgotten"] == "Иван готовится к марафону в Казани 3 мая"
    assert facts["kept"] == {
        "anna": [
            "Anna has a penicillin allergy",
            "Anna moved from Leeds to Lisbon in January",
            "Anna eats fish now, but no meat",
            "Anna goes to a pottery class in Alfama on Wednesdays",
        ],
        "иван": [
            "У Ивана аллергия на арахис",
            "У Сони день рождения 14 апреля",
            "Больше не пьёт кофе по утрам",
        ],
    }
    best = [found["hits"][0]["text"] for found in facts["found"]]
    for text, part in zip(best, ("from Leeds", "sister Clara", "арахис", "у ортопеда"), strict=True):
        assert part in text
    assert 0 < facts["context_tokens"] <= CONTEXT_BUDGET


def assert_learned(learned: dict[str, Any]) -> None:
    assert learned["model"] == "offline"
    assert all(1 <= len(texts) <= 6 for texts in learned["summaries"].values())
    assert any("Соня" in text for text in learned["summaries"]["иван"])
    assert "I prefer British spelling in everything we send" in learned["facts"]["lena"]
    assert any("41, инженер" in text for text in learned["facts"]["иван"])
    assert sum(map(len, learned["facts"].values())) == learned["decisions"]["saved"]
    assert learned["spent"].keys() == {"compact", "extract"}


@pytest.mark.long
async def test_a_language_model_is_named_by_two_variables(folder: Path) -> None:
    with ProviderServer(ProviderState(has_batches=False)) as server:
        demo = await start_demo(
            folder, "--json", MNEMON_MODEL_URL=server.openai_url, MNEMON_MODEL="a-model-of-mine"
        )
        output, errors = await asyncio.wait_for(demo.communicate(), TIMEOUT)
        assert (demo.returncode, errors.decode()) == (0, "")
        purposes = {question.schema is not None for question in server.state.questions}
    learned = json.loads(output)["learned"]
    assert learned["model"] == "a-model-of-mine"
    assert purposes == {True, False}, "it was asked for facts, and for summaries"
    assert all(text.startswith("They spoke of") for text in learned["summaries"]["anna"])
    assert all(text.startswith("Говорили о том") for text in learned["summaries"]["иван"])
    assert {each["model"] for each in learned["spent"].values()} == {"openai/a-model-of-mine"}
    assert left_behind(folder) == []


@pytest.mark.long
async def test_demo_prints_every_step_into_a_file(folder: Path) -> None:
    demo = await mnemon("demo", **environment(folder))
    assert (demo.code, demo.err) == (0, "")

    story = demo.out
    assert "\x1b" not in story
    for part in (
        "rejected   secret     Her museum card",
        "was “Пьёт кофе по утрам”",
        "<key_facts>",
        "diet: pescatarian",  # the latest value, not the first one
        "I don't know of any goats. Should I?",
        "Никаких героев. До завтра, Иван.",
        "день_рождения: 14 апреля 2018",
        "18 messages were discarded",
        "10 messages were removed",
        "Sent twice, stored once",
        "role: Input should be 'user', 'assistant', 'tool' or 'system'",
        "every event is accounted for",
        "Derived in the background",
        "I prefer British spelling",
        "MNEMON_MODEL=qwen3:8b mnemon demo",
        "mnemon up --data ./memory",
        "nats pub chat.acme.u42.-.message.v1",
    ):
        assert part in story
    for line in next(block.text for block in blocks(README) if block.language == "text").splitlines():
        assert line in story, "README shows what the demo does not print"
    assert left_behind(folder) == []


async def is_starting(demo: Process, folder: Path) -> None:
    while not any(folder.glob("mnemon-demo-*/run/nats-server.pid")):
        assert demo.returncode is None
        await asyncio.sleep(0.005)


async def is_running(demo: Process, folder: Path) -> None:
    assert demo.stdout
    while b"consumers" not in (line := await demo.stdout.readline()):
        assert line


@pytest.mark.long
@pytest.mark.parametrize(("number", "moment"), [(signal.SIGTERM, is_starting), (signal.SIGINT, is_running)])
async def test_stopped_demo_leaves_no_process_and_no_folder(
    folder: Path, number: signal.Signals, moment: Callable[[Process, Path], Awaitable[None]]
) -> None:
    demo = await start_demo(folder)
    await asyncio.wait_for(moment(demo, folder), TIMEOUT)
    demo.send_signal(number)
    _, errors = await asyncio.wait_for(demo.communicate(), TIMEOUT)
    assert demo.returncode == 1
    assert errors.decode().endswith("mnemon: the demo was stopped, and its temporary folder is removed\n")
    assert left_behind(folder) == []


async def test_demo_program_of_the_readme_runs(shared: Up) -> None:
    assert shared.endpoints
    code = (files("mnemon.demo") / "first_bot.py").read_text(encoding="utf-8")
    here = code.replace("connect(", f'connect("{shared.endpoints.nats}", ')
    bot = await asyncio.create_subprocess_exec(sys.executable, "-c", here, stdout=PIPE)
    output, _ = await asyncio.wait_for(bot.communicate(), TIMEOUT)
    assert bot.returncode == 0
    assert "I live in Lisbon." in output.decode()
