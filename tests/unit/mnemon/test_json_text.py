"""Values that people type: JSON, or text without quotation marks."""

from typing import Any

import pytest

from mnemon.cli.memory.profile import _parse_assignment
from mnemon.cli.settings import parse_assignment
from mnemon.json_text import parse_json_or_text

DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("text", "value"),
    [("34", 34), ('"34"', "34"), ("null", None), ("Lisbon", "Lisbon"), ("", ""), (DEEP, DEEP)],
)
def test_text_that_is_no_json_stays_a_text(text: str, value: Any) -> None:
    assert parse_json_or_text(text) == value


def test_assignment_with_deeply_nested_json_stays_a_text() -> None:
    assert _parse_assignment(f"notes={DEEP}") == ("notes", DEEP)
    assert parse_assignment(f"context.language={DEEP}", None) == ("context.language", DEEP)
