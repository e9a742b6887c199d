"""Facts, data and tasks in Markdown: lines that are written and read again, and files as events."""

import io
from datetime import UTC, datetime, timedelta
from typing import Any, BinaryIO, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon.operations.imports.markdown import MarkdownReader
from mnemon.operations.imports.records import IncomingEvent, NotReadable, RefusedRecord
from mnemon.operations.imports.run import encode_import, judge_proposal
from mnemon.operations.markdown_lines import (
    MarkdownLine,
    format_fact,
    format_field,
    format_owner,
    format_task,
    parse_fact,
    parse_field,
    parse_owner,
    parse_task,
)
from mnemon_contracts.events.memory import (
    Fact,
    FactProposedV1,
    FactSavedV1,
    ProfileSetV1,
    TaskAddedV1,
    TaskDoneV1,
)
from mnemon_contracts.settings.groups import Policy

STORABLE = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
WORDS = st.text(STORABLE, min_size=1).map(lambda text: " ".join(text.split())).filter(bool)
TRICKY = st.sampled_from(
    ["[exp:2026-01-01] x", "\\[t:profile] x", "\\\\[id:a] x", "- x", "[ ] x", "# x", "1. x"]
)
DAYS = st.integers(0, 30_000).map(lambda days: datetime(2000, 1, 1, tzinfo=UTC) + timedelta(days=days))
TIMES = st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001
JSON = st.recursive(
    st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


class Named(io.BytesIO):
    """A file in memory, with a name."""

    def __init__(self, text: str | bytes, name: str) -> None:
        super().__init__(text.encode() if isinstance(text, str) else text)
        self.name = name


def read(text: str | bytes, name: str = "u1.md", **options: Any) -> list[Any]:
    return list(MarkdownReader(**{"tenant": "acme", **options}).read(cast("BinaryIO", Named(text, name))))


def events(text: str, **options: Any) -> list[Any]:
    return [each.event for each in read(text, **options) if isinstance(each, IncomingEvent)]


@given(text=WORDS | TRICKY, tier=st.sampled_from(["profile", "working", "archive"]), day=st.none() | DAYS)
def test_fact_round_trips_in_markdown(text: str, tier: Any, day: datetime | None) -> None:
    fact = Fact(text=text, tier=tier, importance=9, expires_at=day)
    line = format_fact("pf_001", fact)
    assert "\n" not in line
    assert parse_fact(line) == MarkdownLine(text, "pf_001", tier, 9, day)


@given(text=WORDS | TRICKY, due=st.none() | DAYS | TIMES, done=st.booleans())
def test_task_round_trips_in_markdown(text: str, due: datetime | None, done: bool) -> None:
    line = format_task("t-1", text, due, done=done)
    assert parse_task(line) == (MarkdownLine(text, id="t-1", due_at=due), done)


@given(name=st.text(min_size=1), value=JSON)
def test_field_round_trips_in_markdown(name: str, value: Any) -> None:
    line = format_field(name, value)
    assert "\n" not in line
    assert parse_field(line) == (name, value)


@given(tenant=st.text(min_size=1), user=st.text(min_size=1))
def test_owner_round_trips_in_markdown(tenant: str, user: str) -> None:
    assert parse_owner(format_owner(tenant, user)) == (tenant, user)


def test_fact_line_has_the_known_format() -> None:
    fact = Fact(text="Likes tea", tier="working", importance=9, expires_at=datetime(2026, 3, 1, tzinfo=UTC))
    assert format_fact("wk_014", fact) == "- [id:wk_014] [t:working] [imp:high] [exp:2026-03-01] Likes tea"


def test_a_fact_with_an_id_is_saved_under_it_or_else_proposed() -> None:
    [incoming] = read("- [id:pf_007] [t:profile] [imp:high] Prefers to speak Russian\n")
    saved, proposed = incoming.event, incoming.instead
    assert isinstance(saved, FactSavedV1)
    assert isinstance(proposed, FactProposedV1)
    assert (saved.fact_id, saved.fact.tier, saved.fact.importance) == ("pf_007", "profile", 9)
    assert (proposed.id, proposed.text) == (saved.id, saved.fact.text)


def test_a_fact_with_an_id_is_judged_by_the_policy_of_the_tenant() -> None:
    [incoming] = read("- [id:pf_007] [t:profile] [imp:high] Prefers to speak Russian\n")
    assert judge_proposal(incoming, Policy()) is None
    refused = judge_proposal(incoming, Policy(min_length=5, max_length=10))
    assert refused is not None
    assert refused.field == "text"


def test_markdown_file_may_begin_with_a_byte_order_mark() -> None:
    [found] = read("- Likes tea\n".encode("utf-8-sig"))
    assert found.event.text == "Likes tea"


@pytest.mark.parametrize("text", ["Is learning for an exam", "Is away until Friday", "В отпуске до пятницы"])
def test_a_working_fact_without_a_date_comes_back_without_one(text: str) -> None:
    [incoming] = read(f"- [id:wk_001] [t:working] [imp:low] {text}\n")
    assert isinstance(incoming.event, FactSavedV1)
    assert (incoming.event.fact_id, incoming.event.fact.expires_at) == ("wk_001", None)


@pytest.mark.parametrize(
    "line",
    [
        "- Prefers to speak Russian",
        "* Prefers to speak Russian",
        "1. Prefers to speak Russian",
        "Prefers to speak Russian",
        "- [t:profile] Prefers to speak Russian",
        "- [id:pf_001] [t:profile] [imp:high] password: sk-abcdefghijklmnopqrstuvwxyz123456",
    ],
)
def test_line_in_another_form_is_proposed(line: str) -> None:
    assert [type(each) for each in events(line)] == [FactProposedV1]


def test_file_of_an_old_bot_is_read_whole() -> None:
    old = "# Memory\n\n- Has a cat called Biscuit\n---\n<!-- a note -->\nLives in Lisbon since January\n"
    found = read(old, "data/memory/77.md")
    assert [each.event.text for each in found] == [
        "Has a cat called Biscuit",
        "Lives in Lisbon since January",
    ]
    assert {each.user for each in found} == {"77"}


def test_a_file_per_tier_says_the_tier_and_its_folder_the_user() -> None:
    [one] = read("- Has a cat called Biscuit", "users/77/archive.md")
    assert (one.user, one.event.tier) == ("77", "archive")


def test_line_with_a_check_box_is_a_task_under_every_heading_of_facts() -> None:
    lines = "- [ ] Call the bank\n* [x] Water the plants\n"
    found = [each.event for each in read(f"## To do\n\n{lines}")]
    assert [type(event) for event in found] == [TaskAddedV1, TaskAddedV1, TaskDoneV1]
    assert [event.text for event in found[:2]] == ["Call the bank", "Water the plants"]
    assert [each.event for each in read(f"## Tasks\n\n{lines}")] == found
    for fact in ("- [id:pf_001] [t:profile] [imp:high] [x] marks a spot", "[x] marks a spot"):
        [kept] = read(fact)
        assert isinstance(kept.event, FactSavedV1 | FactProposedV1)


def test_headings_set_the_kind_of_lines() -> None:
    text = """# acme / u9

<!-- mnemon {"tenant": "acme", "user": "u9"} -->

## Profile memory

- Has a cat called Biscuit

## User data

- city: Lisbon
- allergies: ["penicillin"]

## Tasks

- [ ] [id:a] [due:2026-12-01] Call the bank
- [x] Water the plants
"""
    found = read(text, "all.md")
    assert {(each.tenant, each.user) for each in found} == {("acme", "u9")}
    assert {each.tenant for each in read(text, tenant=None)} == {"acme"}
    fact, city, allergies, open_task, added, done = [each.event for each in found]
    assert isinstance(fact, FactProposedV1)
    assert fact.tier == "profile"
    assert isinstance(city, ProfileSetV1)
    assert {**city.fields, **allergies.fields} == {"city": "Lisbon", "allergies": ["penicillin"]}
    assert isinstance(open_task, TaskAddedV1)
    assert (open_task.task_id, open_task.due_at) == ("a", datetime(2026, 12, 1, tzinfo=UTC))
    assert isinstance(done, TaskDoneV1)
    assert done.task_id == added.task_id
    assert {each.user for each in read(text, user="me")} == {"me"}


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("- [t:sometime] Has a cat called Biscuit", "t"),
        ("- [imp:11] Has a cat called Biscuit", "imp"),
        (f"- [imp:{'1' * 5000}] Has a cat called Biscuit", "imp"),
        ("- [exp:2026-02-30] Has a cat called Biscuit", "exp"),
        ("- Has a cat called \0", "text"),
    ],
)
def test_invalid_value_of_a_mark_is_refused(line: str, field: str) -> None:
    [refused] = read(f"- Lives in Lisbon\n{line}\n")[1:]
    assert isinstance(refused, RefusedRecord)
    assert (refused.place, refused.field, refused.source) == ("line 2", field, line)


@pytest.mark.parametrize("depth", [300, 100_000])
def test_data_that_is_nested_too_deeply_is_refused(depth: int) -> None:
    refused, city = read(f"## User data\n- x: {'[' * depth}{']' * depth}\n- city: Lisbon\n")
    assert isinstance(refused, RefusedRecord)
    assert refused.place == "line 2"
    assert isinstance(city, IncomingEvent)
    told = "[" * depth
    assert parse_field(format_field("x", told)) == ("x", told)
    assert parse_owner(f'<!-- mnemon {{"tenant": {told}}} -->') is None


def test_a_user_who_is_no_text_is_refused() -> None:
    [found] = read('<!-- mnemon {"tenant": "acme", "user": "\\ud83d"} -->\n- Has a cat called Biscuit')
    refused = encode_import("acme", found)
    assert isinstance(refused, RefusedRecord)
    assert refused.field == "user"


def test_a_tenant_that_cannot_be_an_id_is_refused() -> None:
    [found] = read("- Has a cat called Biscuit")
    refused = encode_import("a" * 300, found)
    assert isinstance(refused, RefusedRecord)
    assert refused.field == "tenant"


def test_the_same_line_has_the_same_id_wherever_it_stands() -> None:
    first, second = read("- Has a cat\n"), read("\n# A heading\n-  Has a  cat\n")
    assert first[0].event.id == second[0].event.id
    assert first[0].event.id != read("- Has a cat\n", user="u2")[0].event.id


def test_file_must_be_text_with_an_owner() -> None:
    with pytest.raises(NotReadable, match="UTF-8"):
        read(b"- caf\xe9\n")
    with pytest.raises(NotReadable, match="--user"):
        read("- Has a cat\n", "<stdin>")
    with pytest.raises(NotReadable, match="--tenant"):
        read("- Has a cat\n", tenant=None)
