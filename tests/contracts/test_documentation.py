"""The page for bot authors documents every event, verb, field and error code, and its commands are valid."""

import json
import re
import shlex
import shutil
import subprocess
from typing import get_args

import pytest

from mnemon_contracts.export import ROOT
from mnemon_contracts.publication import documentation, published
from mnemon_contracts.publication.published import CONTRACTS
from mnemon_contracts.registry import EVENTS, VERBS
from mnemon_contracts.settings.groups import SettingsV1
from mnemon_contracts.subjects import encode_token, parse_subject
from mnemon_contracts.verbs.ask import ErrorCode

PAGE = documentation.render_page(published.load_examples())
COMMANDS = [shlex.split(line) for line in PAGE.splitlines() if line.startswith(("nats pub ", "nats req "))]
IDS = [
    "u42",
    "-",
    "--",
    "a.b",
    "100%",
    "%2E",
    "*>",
    "a b",
    "\t\n",
    "иван",
    "漢😀",
    "\x7f\x80\xa0",
    "\u2003\u3000\ufeff",
]


@pytest.mark.parametrize("command", COMMANDS, ids=[command[2] for command in COMMANDS])
def test_every_command_is_valid(command: list[str]) -> None:
    program, action, subject, body = command
    address = parse_subject(subject)
    asked = address.space == "ask"
    name = f"ask.{address.name}.v{address.version}.request" if asked else f"{address.name}.v{address.version}"
    assert (program, action) == ("nats", "req" if asked else "pub")
    CONTRACTS[name].model_validate_json(body, extra="forbid")
    assert "{{" not in body  # `nats` reads it as a template


def test_every_event_and_verb_has_a_command() -> None:
    shown = {parse_subject(command[2]).name for command in COMMANDS}
    assert shown == EVENTS.keys() | VERBS.keys()


def test_every_reply_shown_is_valid() -> None:
    replies = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
    assert len(replies) == sum(len(verb.replies) for verb in VERBS.values())
    assert all("seen_seq" in reply for reply in replies)


def test_every_error_code_is_explained() -> None:
    explained = re.findall(r"^\| `(\w+)` \| [A-Z]", PAGE, re.MULTILINE)
    assert explained == list(get_args(ErrorCode))


def test_every_field_is_on_the_page() -> None:
    fields = {field for contract in CONTRACTS.values() for field in contract.model_fields}
    assert {field for field in fields if f"| `{field}` |" not in PAGE} == set()


def test_page_names_the_latest_version_of_each_verb() -> None:
    rows = dict(re.findall(r"^\| \[`(\w+)`\]\(#\w+-v\d+\) \| v(\d+) \|", PAGE, re.MULTILINE))
    assert rows.items() >= {name: str(len(verb.requests)) for name, verb in VERBS.items()}.items()


def test_the_pages_name_the_budget_that_a_context_has() -> None:
    budget = f"{SettingsV1().context.budget:,}"
    assert f"the setting `context.budget`, {budget} unless changed" in PAGE
    authors = (ROOT / "docs" / "bot-authors.md").read_text(encoding="utf-8")
    assert f"It has at most `budget` tokens, else {budget}," in authors


def test_every_link_within_the_page_has_a_target() -> None:
    headings = re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", PAGE)) <= anchors


def test_every_table_row_is_complete() -> None:
    cells = [len(re.findall(r"(?<!\\)\|", line)) for line in PAGE.splitlines() if line.startswith("| ")]
    assert set(cells) <= {3, 4, 5, 6}
    for table in re.findall(r"(?:^\|.*\n)+", PAGE, re.MULTILINE):
        assert len({row.count("|") for row in table.splitlines()}) == 1, table


@pytest.mark.skipif(
    shutil.which("node") is None, reason="the JavaScript of the page is run where Node is installed"
)
def test_javascript_of_the_page_encodes_ids_as_the_client_does() -> None:
    [snippet] = [block for block in re.findall(r"```js\n(.*?)```", PAGE, re.DOTALL) if "const token" in block]
    script = f"{snippet}\nconsole.log(JSON.stringify({json.dumps(IDS)}.map(token)));"
    output = subprocess.check_output(["node", "-e", script], timeout=60)
    assert json.loads(output) == [encode_token(identifier) for identifier in IDS]
