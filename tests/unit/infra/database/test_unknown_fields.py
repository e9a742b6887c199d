"""Rows of events that a newer version wrote: unknown fields are kept."""

import json
from typing import Any

import pytest

from mnemon_contracts.events.memory import Decision, Fact, FactSavedV1
from mnemon_infra.database.projections.rows import MemoryRow, build_row
from mnemon_infra.delivery import Delivery

SAVED = FactSavedV1(
    fact_id="ar_001", fact=Fact(text="Has a parrot", names=("Rio",)), decision=Decision(proposal_id="p1")
)
KNOWN: dict[str, Any] = json.loads(SAVED.encode_body())


def row_body(body: bytes) -> dict[str, Any]:
    row = build_row(
        Delivery(
            stream="LOG",
            subject="memory.acme.u1.fact.saved.v1",
            body=body,
            sequence=7,
            deliveries=1,
            stored_at=1.0,
            message_id="e1",
        )
    )
    assert isinstance(row, MemoryRow)
    found: dict[str, Any] = json.loads(row.values)["body"]
    return found


def test_event_of_this_version_is_written_as_it_was_read() -> None:
    assert row_body(SAVED.encode_body()) == KNOWN


@pytest.mark.parametrize("value", [None, 7, "new", ["a", {"b": 1.5}], {"c": [True]}, ""])
def test_unknown_fields_are_kept_at_each_level(value: object) -> None:
    newer = {**KNOWN, "mood": value, "fact": {**KNOWN["fact"], "colour": value}}
    newer["lineage"] = {"sources": [3], "spoken_in": value}
    assert row_body(json.dumps(newer).encode()) == newer


@pytest.mark.parametrize("name", ["merged", "from_seq", "windows", "usd"])
def test_fields_of_other_events_are_left_out(name: str) -> None:
    """Queries over several kinds of events read these fields, which this event must therefore not have."""
    assert row_body(json.dumps({**KNOWN, name: "x"}).encode()) == KNOWN


def test_known_fields_are_written_as_this_version_spells_them() -> None:
    spelled = {**KNOWN, "at": None, "fact": {**KNOWN["fact"], "expires_at": "2026-12-01T10:00:00+02:00"}}
    found = row_body(json.dumps(spelled).encode())
    assert found == row_body(FactSavedV1.parse(json.dumps(spelled).encode()).encode_body())
    assert "at" not in found


@pytest.mark.parametrize("value", ['"\\u0000"', '{"a\\u0000": 1}', "NaN"])
def test_unknown_field_that_cannot_be_stored_is_left_out(value: str) -> None:
    opening = SAVED.encode_body()[:-1]
    assert row_body(b'%b,"mood":%b}' % (opening, value.encode())) == KNOWN
