"""Parses a model's answer into facts and relations, each checked separately.

An answer is not trusted: it may be no JSON, end in the middle, name unknown facts, or hold more than the
request asked for.
"""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import cache
from math import isfinite
from types import MappingProxyType
from typing import Annotated, Any, Final, NamedTuple, get_args

import json_repair
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
)

from mnemon_consumers.extract.answers.pair_relations import ComparedPair, relations_of
from mnemon_contracts.base import Contract, Identifier, MomentOrDay, Text
from mnemon_contracts.events.memory import Kind, Tier
from mnemon_contracts.fact_pairs import FactPair, Relation
from mnemon_infra.models.language.port import ModelAnswer, PromptFact, PromptMessage

MOST_FACTS: Final = 50
"""Most facts of one answer that are proposed."""

MOST_CHARACTERS: Final = 10_000
"""Most characters of a fact that is parsed; the policy sets the length of a fact that is kept."""

MOST_OF_AN_ANSWER: Final = 100_000
"""Most characters of an answer; a longer one is unreadable, because its repair would take seconds."""

_NAMED_LIST: Final = re.compile(r"""["']?facts["']?\s*:\s*\[""")
_NAMED_PAIRS: Final = re.compile(r"""["']?pairs["']?\s*:\s*\[""")
_LIST: Final = re.compile(r"\[(?=\s*[{\]])")
_MARK: Final = re.compile(r'\\.|["\[\]{}]', re.DOTALL)
"""Characters that structure a list of facts; an escaped character is not one of them."""

_THOUGHTS_END: Final = "</think>"
"""Tag before which local models write their thoughts."""


class Unreadable(Exception):
    """An answer has no list of facts. The message repeats nothing of the answer."""


def _or_none(value: object, check: ValidatorFunctionWrapHandler) -> Any:
    try:
        return check(value)
    except ValidationError:
        return None


def _one_line(text: str) -> str:
    if len(text) > MOST_CHARACTERS:
        raise ValueError("is too long")
    if not any(character.isalpha() for character in text):
        raise ValueError("has no words")
    return " ".join(text.split())


def _one_to_ten(value: object) -> int | None:
    try:
        number = float(value) if isinstance(value, int | float | str) else None
    except (ValueError, OverflowError):
        return None
    if number is None or isinstance(value, bool) or not isfinite(number):
        return None
    return round(min(max(number, 1), 10))


def _positions(value: object) -> tuple[int, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(
        position for position in value if isinstance(position, int) and not isinstance(position, bool)
    )


def _bare(value: object) -> object:
    """Return an id without the brackets in which the request shows it."""
    return value.strip().strip("[]") if isinstance(value, str) else value


def _asked_for(kind: str, *, or_null: bool = False, **more: Any) -> WithJsonSchema:
    """Return a schema that is stricter than the parser, in terms that every provider's strict mode knows."""
    schema = {"type": kind, **more}
    return WithJsonSchema({"anyOf": [schema, {"type": "null"}]} if or_null else schema)


_OR_NONE: Final = WrapValidator(_or_none)


class ProposedFact(Contract):
    """A fact as a model proposes it. Invalid optional parts are left out."""

    text: Annotated[Text, AfterValidator(_one_line)] = Field(
        description="The fact: one sentence of 12 to 240 characters, in the user's language."
    )
    memory_type: Annotated[Kind | None, _OR_NONE, _asked_for("string", enum=list(get_args(Kind)))] = Field(
        default=None, description="What sort of fact it is."
    )
    importance: Annotated[int | None, BeforeValidator(_one_to_ten), _asked_for("integer")] = Field(
        default=None, description="1 to 10: 10 for what must never be forgotten, 1 for small talk."
    )
    tier: Annotated[Tier | None, _OR_NONE] = Field(
        default=None,
        description="profile: holds for long; working: holds for now; archive: a detail; null: not sure.",
    )
    expires_at: Annotated[MomentOrDay | None, _OR_NONE, _asked_for("string", or_null=True)] = Field(
        default=None, description="YYYY-MM-DD, the first day on which it no longer holds, or null."
    )
    supersedes: Annotated[
        Identifier | None, BeforeValidator(_bare), _OR_NONE, _asked_for("string", or_null=True)
    ] = Field(default=None, description="Id of the known fact that it replaces, or null.")
    sources: Annotated[tuple[int, ...], BeforeValidator(_positions)] = Field(
        default=(), description="Numbers of the messages that say it."
    )


class Extracted(NamedTuple):
    """Content of an answer.

    Attributes:
        facts: usable facts; their `sources` are log positions.
        repaired: whether the answer was no JSON and was repaired.
        left_out: number of facts that are not proposed: without text, too long, or beyond the limit.
        beyond_limit: usable facts among them that are beyond the limit.
        relations: the relations that it gives for pairs that the request asked about.
    """

    facts: tuple[ProposedFact, ...]
    repaired: bool = False
    left_out: int = 0
    beyond_limit: tuple[ProposedFact, ...] = ()
    relations: Mapping[FactPair, Relation] = MappingProxyType({})


@cache
def schema() -> Mapping[str, Any]:
    """Return the JSON Schema of an answer for the strict modes of providers: every field is required."""
    lists: dict[str, type[Contract]] = {"facts": ProposedFact, "pairs": ComparedPair}
    return _object({name: {"type": "array", "items": _item(item)} for name, item in lists.items()})


def read(
    answer: ModelAnswer,
    said: Sequence[PromptMessage],
    known: Collection[PromptFact],
    pairs: Sequence[FactPair] = (),
) -> Extracted:
    """Parse an answer.

    Args:
        answer: the answer of the model.
        said: the messages of the request, in the order of their numbers in it.
        known: the facts that the request named.
        pairs: the pairs that the request asked about.

    Raises:
        Unreadable: the answer has no list of facts, or is too long.
    """
    text = answer.text.rpartition(_THOUGHTS_END)[2]
    if len(text) > MOST_OF_AN_ANSWER:
        raise Unreadable(f"an answer of {len(text):,} characters")
    repaired = False
    compared: object
    try:
        value = json.loads(text)
        listed, compared = _listed(value), value.get("pairs") if isinstance(value, dict) else None
    except (ValueError, RecursionError):
        repaired = True
        listed, end = _mended(text, _NAMED_LIST.search(text) or _LIST.search(text))
        # Only after the facts: the sentence of a fact may hold text that looks like a list of pairs.
        compared, _ = _mended(text, _NAMED_PAIRS.search(text, end))
    if listed is None:
        raise Unreadable("there is no list of facts in the answer")
    facts = tuple(fact for each in listed if (fact := _fact(each, said, known)))
    taken, beyond = facts[:MOST_FACTS], facts[MOST_FACTS:]
    left_out = len(listed) - len(taken)
    return Extracted(taken, repaired, left_out, beyond, relations_of(compared, pairs))


def _item(item: type[Contract]) -> dict[str, Any]:
    return _object(
        {
            name: {key: value for key, value in field.items() if key not in ("title", "default")}
            for name, field in item.model_json_schema()["properties"].items()
        }
    )


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _listed(value: object) -> list[object] | None:
    """Return the list of facts, either under its name or as the whole answer."""
    if isinstance(value, dict):
        value = value.get("facts")
        return value if isinstance(value, list) else None
    if isinstance(value, list) and all(isinstance(each, dict) and "text" in each for each in value):
        return value
    return None


def _mended(text: str, begins: re.Match[str] | None) -> tuple[list[object] | None, int]:
    """Read a list that has text around it, or is malformed or cut off; return it and its end."""
    if begins is None:
        return None, len(text)
    start = begins.end() - 1
    end, closed = _whole(text, start)
    excerpt = text[start:end] if closed else f"{text[start:end]}]"
    value: object = None
    for parse in (json.loads, json_repair.loads):
        with suppress(ValueError, RecursionError):
            value = parse(excerpt)
            break
    return value if isinstance(value, list) and (value or closed) else None, end


def _whole(text: str, start: int) -> tuple[int, bool]:
    """Find the end of a list, and whether it is closed; otherwise the end of its last complete entry.

    Incomplete entries are dropped: a sentence that was cut off may say the opposite of what was meant.
    """
    opened, quoted, end = 0, False, start + 1
    for found in _MARK.finditer(text, start):
        match found[0]:
            case '"':
                quoted = not quoted
            case "[" | "{" if not quoted:
                opened += 1
            case "]" | "}" if not quoted:
                opened -= 1
                if opened == 0:
                    return found.end(), True
                if opened == 1:
                    end = found.end()
    return end, False


def _fact(value: object, said: Sequence[PromptMessage], known: Collection[PromptFact]) -> ProposedFact | None:
    """Return a usable fact. Its sources become log positions; without any, all messages are its sources."""
    try:
        fact = ProposedFact.model_validate({"text": value} if isinstance(value, str) else value)
    except (ValidationError, RecursionError):
        return None
    named = dict.fromkeys(said[number - 1].seq for number in fact.sources if 0 < number <= len(said))
    supersedes = fact.supersedes if any(each.id == fact.supersedes for each in known) else None
    sources = tuple(named) or tuple(each.seq for each in said)
    return fact.model_copy(update={"sources": sources, "supersedes": supersedes})
