"""docs/log-messages.md has every log message in the code, with its level."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator

import pytest

from mnemon_contracts.export import ROOT

PAGE = ROOT / "docs" / "log-messages.md"
PACKAGES = ("mnemon", "consumers", "infra", "producers", "contracts", "migrations")
LEVELS = {
    "info": "info",
    "warning": "warning",
    "error": "error",
    "exception": "error",
    "critical": "critical",
}


def log_calls() -> Iterator[tuple[str, str, ast.Call]]:
    """Yield the file and line, the method and the call of each log message above the level debug."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            code = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(code)) if "log." in code else ():
                match node:
                    case ast.Call(func=ast.Attribute(value=ast.Name(id="log"), attr=method)):
                        if method in LEVELS or method == "log":
                            yield f"{path.relative_to(ROOT)}:{node.lineno}", method, node


def logged_messages() -> dict[str, set[str]]:
    """Return the levels of each phrase in the code."""
    levels = defaultdict(set)
    for place, method, call in log_calls():
        match call.args:
            case [ast.Constant(value=str(phrase)), *_] if method in LEVELS:
                levels[phrase].add(LEVELS[method])
            case _:
                pytest.fail(f"{place}: a log call takes a level's method and a constant phrase")
    return levels


def documented_messages() -> dict[str, set[str]]:
    """Return the levels of each phrase on the page."""
    rows = re.findall(r"^\| `([^`]+)` \| ([a-z, ]+) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(rows) == len({phrase for phrase, _ in rows}), "a phrase is on the page twice"
    return {phrase: set(levels.split(", ")) for phrase, levels in rows}


def test_every_message_is_on_the_page_and_the_page_has_no_other() -> None:
    assert documented_messages() == logged_messages(), f"give each phrase a row with its levels in {PAGE}"


def test_every_message_says_what_to_do() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert [row for row in rows if not re.fullmatch(r"\|( [^|]+ \|){4}", row)] == []
