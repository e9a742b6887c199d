"""Report of an import, made before the first event is sent."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from mnemon.operations.imports.markdown import MarkdownReader
from mnemon.operations.imports.records import ImportRecord, IncomingEvent, LeftOutRecord, RefusedRecord
from mnemon.operations.imports.report import MAX_FIRST, ImportReport, format_refused
from mnemon.operations.imports.run import count_records
from mnemon_contracts.events.chat import MessageV1
from mnemon_contracts.events.memory import FactProposedV1


def said(user: str, **fields: Any) -> IncomingEvent:
    event = MessageV1(role="user", **{"id": "m", "content": "hi", **fields})
    return IncomingEvent("line 1", user, event, {"a": 1})


async def report_on(*found: ImportRecord) -> ImportReport:
    async def source() -> AsyncIterator[ImportRecord]:
        for each in found:
            yield each

    report = ImportReport()
    await count_records(source(), "acme", report, lambda _: None)
    return report


async def test_kinds_users_and_what_is_left_are_counted() -> None:
    fact = FactProposedV1(id="f", text="Likes tea with milk")
    report = await report_on(
        said("u1"),
        said("u1"),
        said("u2"),
        IncomingEvent("line 4", "u2", fact),
        LeftOutRecord("line 5", "a call"),
    )
    figures = report.to_json()
    assert (figures["events"], figures["users"]) == ({"message": 3, "fact.proposed": 1}, 2)
    assert [each["user"] for each in figures["first_users"]] == ["u1", "u2"]
    assert (figures["left"], figures["refused"], figures["published"]) == ({"a call": 1}, 0, 0)


async def test_report_names_some_users_and_says_whether_there_are_more() -> None:
    few = await report_on(*(said(f"u{number}") for number in (1, 2, 1, 2)))
    assert ([user for _, user in few.first_users], few.has_more_users) == (["u1", "u2"], False)
    many = await report_on(*(said(f"u{number}") for number in range(MAX_FIRST + 1)))
    assert (len(many.first_users), many.has_more_users) == (MAX_FIRST, True)


@pytest.mark.parametrize(
    ("found", "field"),
    [
        (said("u1", content="x" * 1_100_000), "body"),
        (said("u1", id=" m "), "id"),
        (said("u" * 300), "user"),
        (said("u1")._replace(conversation="c" * 300), "conversation"),
        (IncomingEvent("line 1", "u" * 300, FactProposedV1(id="f", text="Likes tea")), "user"),
        (IncomingEvent("line 1", "u1", FactProposedV1(id="f", text="What is it?")), "text"),
        (
            IncomingEvent("line 1", "u1", FactProposedV1(id="f", text="key sk-abcdefghijklmnopqrstuvwxyz12")),
            "text",
        ),
        (RefusedRecord("line 1", "role", "is none"), "role"),
    ],
)
async def test_refused_records_are_counted_before_import(found: ImportRecord, field: str) -> None:
    report = await report_on(found, said("u1"))
    assert [each.field for each in report.first] == [field]
    assert report.to_json()["first_refusals"][0]["place"] == "line 1"
    assert report.events["message"] == 1


async def test_facts_that_the_default_policy_judges_are_counted() -> None:
    facts = [FactProposedV1(id="f", text=text) for text in ("Likes tea with milk", "What is it?")]
    report = await report_on(said("u1"), *(IncomingEvent("line 1", "u1", fact) for fact in facts))
    assert report.to_json()["judged_by_default_policy"] == 2


async def test_fact_with_an_id_counts_as_judged_by_the_default_policy(tmp_path: Path) -> None:
    path = tmp_path / "u1.md"
    path.write_text("- [id:pf_007] [t:profile] [imp:high] Prefers to speak Russian\n")
    with path.open("rb") as file:
        report = await report_on(*MarkdownReader("acme").read(file))
    assert report.to_json()["judged_by_default_policy"] == 1


async def test_report_shows_some_refusals_and_keeps_all() -> None:
    kept: list[RefusedRecord] = []
    report = ImportReport(kept.append)
    for number in range(MAX_FIRST + 5):
        report.count_refused(RefusedRecord(f"line {number}", "role", "is none", {"role": "critic"}))
    assert (len(report.first), len(kept), report.refused) == (MAX_FIRST, MAX_FIRST + 5, MAX_FIRST + 5)
    assert format_refused(kept[0]).endswith('"record": {"role": "critic"}}')
