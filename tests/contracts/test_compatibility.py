"""A released schema may gain an optional field or change its descriptions; any other change is breaking."""

import json
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, create_model

from mnemon_contracts.publication.compatibility import find_breaking_changes


class Place(BaseModel):
    """A place by its city."""

    city: str = Field(description="The city.")


class PlaceWithStreet(BaseModel):
    """A place by its city and street."""

    city: str = Field(description="The town or city.")
    street: str | None = None


class PlaceWithCountry(BaseModel):
    """A place by its city and country."""

    city: str
    country: str


class Chain(BaseModel):
    """A schema that refers to itself."""

    link: "Chain | None" = None
    size: int = Field(default=1, ge=1)


class LongerChain(BaseModel):
    """A schema that refers to itself, with another minimum of `size`."""

    link: "LongerChain | None" = None
    size: int = Field(default=1, ge=2)


def schema(**fields: Any) -> dict[str, Any]:
    model: type[BaseModel] = create_model("Something", **fields)
    return model.model_json_schema()


RELEASED = schema(
    name=(str, ...),
    role=(Literal["user", "assistant"], "user"),
    limit=(int, Field(default=30, ge=1, le=1000)),
    note=(str | None, Field(default=None, max_length=255, description="A note.")),
    tags=(tuple[str, ...], ()),
    place=(Place | None, None),
    places=(tuple[Place, ...], ()),
    scores=(dict[str, float], {}),
    number=(int | Literal["high", "low"] | None, None),
    sent_at=(str | None, Field(default=None, json_schema_extra={"format": "date-time"})),
)


def changed(**fields: Any) -> dict[str, Any]:
    """Return the released schema with the given fields replaced; None removes a field."""
    current: dict[str, Any] = json.loads(json.dumps(RELEASED))
    replaced = {name: field for name, field in fields.items() if field is not None}
    new = schema(**replaced)
    for name in fields:
        current["properties"].pop(name, None)
        current["required"] = [each for each in current["required"] if each != name]
    current["properties"] |= new.get("properties", {})
    current["required"] += new.get("required", [])
    current["$defs"] = current.get("$defs", {}) | new.get("$defs", {})
    return current


@pytest.mark.parametrize(
    "current",
    [
        pytest.param(RELEASED, id="nothing changed"),
        pytest.param(changed(mood=(str | None, None)), id="new optional field"),
        pytest.param(changed(mood=(Literal["glad", "sad"], "glad")), id="new field with a default"),
        pytest.param(
            changed(note=(str | None, Field(default=None, max_length=255, description="Other words."))),
            id="other words",
        ),
        pytest.param(
            changed(place=(PlaceWithStreet | None, None)), id="new optional field in a nested object"
        ),
        pytest.param(changed(places=(tuple[PlaceWithStreet, ...], ())), id="new optional field in a list"),
        pytest.param({**RELEASED, "title": "Else", "$id": "urn:x", "description": "Else."}, id="other title"),
        pytest.param(
            {**RELEASED, "properties": dict(reversed(RELEASED["properties"].items()))}, id="other order"
        ),
    ],
)
def test_compatible_change_is_accepted(current: dict[str, Any]) -> None:
    assert find_breaking_changes(RELEASED, current) == []


@pytest.mark.parametrize(
    ("current", "expected"),
    [
        (changed(note=None), ["note: removed"]),
        (changed(name=None), ["name: removed"]),
        (changed(mood=(str, ...)), ["mood: new, and required"]),
        (changed(name=(str | None, None)), [
            "name: was required, is optional",
            "name: default was absent, is null",
            "name: null is accepted too, which released readers refuse",
        ]),
        (changed(note=(str, Field(max_length=255))), [
            "note: was optional, is required",
            "note: default was null, is absent",
            "note: null is no longer accepted",
        ]),
        (changed(limit=(str, "30")), [
            'limit: default was 30, is "30"',
            "limit: integer is no longer accepted",
            "limit: string is accepted too, which released readers refuse",
        ]),
        (changed(limit=(int, Field(default=30, ge=1, le=100))), ["limit: maximum was 1000, is 100"]),
        (changed(limit=(int, Field(default=30, ge=0, le=1000))), ["limit: minimum was 1, is 0"]),
        (changed(limit=(int, Field(default=30, ge=1))), ["limit: maximum was 1000, is absent"]),
        (changed(limit=(int, Field(default=10, ge=1, le=1000))), ["limit: default was 30, is 10"]),
        (changed(limit=(float, Field(default=30, ge=1, le=1000))), [
            "limit: integer is no longer accepted",
            "limit: number is accepted too, which released readers refuse",
        ]),
        (changed(note=(str | None, Field(default=None, max_length=10))), ["note: maxLength was 255, is 10"]),
        (changed(note=(str | None, Field(default=None, min_length=1, max_length=255))), [
            "note: minLength was absent, is 1"
        ]),
        (changed(note=(str | None, Field(default=None, max_length=255, pattern="a"))), [
            'note: pattern was absent, is "a"'
        ]),
        (changed(role=(Literal["user"], "user")), [
            'role: enum was ["user", "assistant"], is absent', 'role: const was absent, is "user"'
        ]),
        (changed(role=(Literal["user", "tool"], "user")), [
            'role: "assistant" is no longer accepted',
            'role: "tool" is accepted too, which released readers refuse',
        ]),
        (changed(role=(str, "user")), ['role: enum was ["user", "assistant"], is absent']),
        (changed(tags=(tuple[int, ...], ())), [
            "tags[]: string is no longer accepted",
            "tags[]: integer is accepted too, which released readers refuse",
        ]),
        (changed(tags=(tuple[str, ...], Field(default=(), max_length=3))), [
            "tags: maxItems was absent, is 3"
        ]),
        (changed(place=(PlaceWithCountry | None, None)), ["place.country: new, and required"]),
        (changed(places=(tuple[PlaceWithCountry, ...], ())), ["places[].country: new, and required"]),
        (changed(scores=(dict[str, int], {})), [
            "scores.*: number is no longer accepted",
            "scores.*: integer is accepted too, which released readers refuse",
        ]),
        (changed(number=(int | Literal["high"] | None, None)), [
            'number: enum was ["high", "low"], is absent', 'number: const was absent, is "high"'
        ]),
        (changed(number=(Literal["high", "low"] | None, None)), ["number: integer is no longer accepted"]),
        (changed(sent_at=(str | None, None)), ['sent_at: format was "date-time", is absent']),
        ({**RELEASED, "additionalProperties": False}, ["body: additionalProperties was absent, is false"]),
    ],
)  # fmt: skip
def test_breaking_change_is_named(current: dict[str, Any], expected: list[str]) -> None:
    assert sorted(find_breaking_changes(RELEASED, current)) == sorted(expected)


def test_a_contract_that_refers_to_itself_is_compared_once() -> None:
    released, current = Chain.model_json_schema(), LongerChain.model_json_schema()
    current = json.loads(json.dumps(current).replace("LongerChain", "Chain"))
    assert find_breaking_changes(released, released) == []
    assert "size: minimum was 1, is 2" in find_breaking_changes(released, current)
