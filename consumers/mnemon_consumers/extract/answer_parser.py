"""Parses a model's answer into facts and relations, each checked separately.

An answer is not trusted. The text may not be JSON, end in the middle, name unknown facts, or hold more than
the request asked for.
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
    ValidationInfo,
    ValidatorFunctionWrapHandler,
    WithJsonSchema,
    WrapValidator,
    field_validator,
)

from mnemon_consumers.extract.pair_relations import ComparedPair, parse_relations, strip_brackets
from mnemon_contracts.base import Contract, Identifier, MomentOrDay, Text
from mnemon_contracts.events.memory import MAX_NAMES, Kind, Tier
from mnemon_contracts.fact_pairs import FactPair, Relation
from mnemon_infra.models.language.port import ModelAnswer, PromptFact, PromptMessage

MOST_FACTS: Final = 50
"""Maximum number of facts of one answer that are proposed."""

MOST_CHARACTERS: Final = 10_000
"""Maximum number of characters of a fact to parse; the policy limits the length of a kept fact."""

MOST_ANSWER_CHARACTERS: Final = 100_000
"""Maximum number of characters of an answer. A longer answer counts as unreadable, because its repair would
take seconds."""

_NAMED_LIST: Final = re.compile(r"""["']?facts["']?\s*:\s*\[""")
_NAMED_PAIRS: Final = re.compile(r"""["']?pairs["']?\s*:\s*\[""")
_LIST: Final = re.compile(r"\[(?=\s*[{\]])")
_MARK: Final = re.compile(r'\\.|["\[\]{}]', re.DOTALL)
"""A character that structures JSON, or an escaped character as a whole, which structures nothing."""

_THOUGHTS_END: Final = "</think>"
"""Tag before which local models write their thoughts."""


class UnreadableAnswer(Exception):
    """An answer that is too long or has no readable list of facts. The error text does not quote it."""


def _ignore_invalid(value: object, check: ValidatorFunctionWrapHandler) -> Any:
    try:
        return check(value)
    except ValidationError:
        return None


def _check_text(text: str) -> str:
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"the text of the fact has more than {MOST_CHARACTERS:,} characters: drop the fact")
    if not any(character.isalpha() for character in text):
        raise ValueError("the text of the fact has no words: drop the fact")
    return " ".join(text.split())


def _clamp_importance(value: object) -> int | None:
    try:
        number = float(value) if isinstance(value, int | float | str) else None
    except (ValueError, OverflowError):
        return None
    if number is None or isinstance(value, bool) or not isfinite(number):
        return None
    return round(min(max(number, 1), 10))


def _keep_integers(value: object) -> tuple[int, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(
        position for position in value if isinstance(position, int) and not isinstance(position, bool)
    )


def _keep_texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(dict.fromkeys(" ".join(text.split()) for text in value if isinstance(text, str)))


def _require_type(kind: str, *, or_null: bool = False, **more: Any) -> WithJsonSchema:
    """Return an annotation with a schema that is stricter than the parser.

    `kind` is a type of JSON Schema; `or_null` allows null, too. The schema has only keywords that every
    provider's strict mode supports.
    """
    schema = {"type": kind, **more}
    return WithJsonSchema({"anyOf": [schema, {"type": "null"}]} if or_null else schema)


_OR_NONE: Final = WrapValidator(_ignore_invalid)


class ProposedFact(Contract):
    """A fact as a model proposes it. The parser drops invalid optional fields."""

    text: Annotated[Text, AfterValidator(_check_text)] = Field(
        description="The fact: one sentence of 12 to 240 characters, in the user's language."
    )
    memory_type: Annotated[Kind | None, _OR_NONE, _require_type("string", enum=list(get_args(Kind)))] = Field(
        default=None, description="Kind of the fact."
    )
    importance: Annotated[int | None, BeforeValidator(_clamp_importance), _require_type("integer")] = Field(
        default=None, description="1 to 10: 10 for a fact that must never be forgotten, 1 for small talk."
    )
    tier: Annotated[Tier | None, _OR_NONE] = Field(
        default=None,
        description="profile: holds for long; working: holds for now; archive: a detail; null: not sure.",
    )
    expires_at: Annotated[MomentOrDay | None, _OR_NONE, _require_type("string", or_null=True)] = Field(
        default=None, description="YYYY-MM-DD, the first day on which the fact no longer holds, or null."
    )
    supersedes: Annotated[
        Identifier | None, BeforeValidator(strip_brackets), _OR_NONE, _require_type("string", or_null=True)
    ] = Field(default=None, description="Id of the known fact that this fact replaces, or null.")
    sources: Annotated[tuple[int, ...], BeforeValidator(_keep_integers)] = Field(
        default=(), description="Numbers of the messages that state the fact."
    )
    names: Annotated[tuple[str, ...], BeforeValidator(_keep_texts)] = Field(
        default=(),
        description="Names of people, pets, places and things in the text, spelled as in the text.",
    )

    @field_validator("names")
    @classmethod
    def _keep_names_of_text(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        # A name that the text lacks would bypass the checks for secrets and for invented names, which read
        # the text only.
        text = str(info.data.get("text", "")).casefold()
        return tuple(name for name in names if name and name.casefold() in text)[:MAX_NAMES]


class ParsedAnswer(NamedTuple):
    """Content of a model's answer.

    Attributes:
        facts: usable facts; their `sources` are log positions.
        repaired: whether the answer was not valid JSON and was repaired.
        left_out: number of listed facts that are not proposed: facts without a usable text, and usable facts
            beyond the limit.
        beyond_limit: the usable facts beyond the limit, which `left_out` counts too.
        relations: the relations that the answer gives for pairs that the request asked about.
    """

    facts: tuple[ProposedFact, ...]
    repaired: bool = False
    left_out: int = 0
    beyond_limit: tuple[ProposedFact, ...] = ()
    relations: Mapping[FactPair, Relation] = MappingProxyType({})


@cache
def build_schema() -> Mapping[str, Any]:
    """Return the JSON Schema of an answer for the strict modes of providers: every field is required."""
    lists: dict[str, type[Contract]] = {"facts": ProposedFact, "pairs": ComparedPair}
    return _build_object_schema(
        {name: {"type": "array", "items": _build_item_schema(item)} for name, item in lists.items()}
    )


def parse_answer(
    answer: ModelAnswer,
    messages: Sequence[PromptMessage],
    known: Collection[PromptFact],
    pairs: Sequence[FactPair] = (),
) -> ParsedAnswer:
    """Parse the answer of a model.

    Of an answer that is no valid JSON, the complete facts and relations count.

    Args:
        answer: the answer.
        messages: the messages of the request, in the order of their numbers in it.
        known: the facts that a fact of the answer may replace.
        pairs: the pairs of facts that the request asked about.

    Raises:
        UnreadableAnswer: the answer has no list of facts, or is too long.
    """
    text = answer.text
    # An answer that begins with JSON has no thoughts: the tag stands in the sentence of a fact.
    if not text.lstrip().startswith(("{", "[")):
        text = text.rpartition(_THOUGHTS_END)[2]
    if len(text) > MOST_ANSWER_CHARACTERS:
        raise UnreadableAnswer(
            f"the answer has {len(text):,} characters, and the limit is {MOST_ANSWER_CHARACTERS:,}; if this "
            "repeats, choose another model with the setting extraction.model"
        )
    repaired = False
    compared: object
    try:
        value = json.loads(text)
        listed, compared = _find_fact_list(value), value.get("pairs") if isinstance(value, dict) else None
    except (ValueError, RecursionError):
        repaired = True
        listed, end = _repair_list(text, _NAMED_LIST.search(text) or _LIST.search(text))
        # Search only after the facts: the sentence of a fact may hold text that looks like a list of pairs.
        compared, _ = _repair_list(text, _NAMED_PAIRS.search(text, end))
    if listed is None:
        raise UnreadableAnswer(
            "the answer has no list of facts; if this repeats, choose another model with the setting "
            "extraction.model"
        )
    facts = tuple(fact for each in listed if (fact := _read_fact(each, messages, known)))
    taken, beyond = facts[:MOST_FACTS], facts[MOST_FACTS:]
    left_out = len(listed) - len(taken)
    return ParsedAnswer(taken, repaired, left_out, beyond, parse_relations(compared, pairs))


def _build_item_schema(item: type[Contract]) -> dict[str, Any]:
    return _build_object_schema(
        {
            name: {key: value for key, value in field.items() if key not in ("title", "default")}
            for name, field in item.model_json_schema()["properties"].items()
        }
    )


def _build_object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _find_fact_list(value: object) -> list[object] | None:
    """Return the list of facts, either under its name or as the whole answer; None if there is no list."""
    if isinstance(value, dict):
        value = value.get("facts")
        return value if isinstance(value, list) else None
    if isinstance(value, list) and all(isinstance(each, dict) and "text" in each for each in value):
        return value
    return None


def _repair_list(text: str, begins: re.Match[str] | None) -> tuple[list[object] | None, int]:
    """Read a list that has text around it, or is malformed or cut off.

    `begins` matches the text up to the opening bracket of the list; None if no list was found.

    Returns:
        The list, or None if it cannot be read; and the position in the text of the first character after it.
    """
    if begins is None:
        return None, len(text)
    start = begins.end() - 1
    end, closed = _find_list_end(text, start)
    excerpt = text[start:end] if closed else f"{text[start:end]}]"
    value: object = None
    for parse in (json.loads, json_repair.loads):
        with suppress(ValueError, RecursionError):
            value = parse(excerpt)
            break
    return value if isinstance(value, list) and (value or closed) else None, end


def _find_list_end(text: str, start: int) -> tuple[int, bool]:
    """Find the end of the list that begins at index `start`.

    Incomplete entries are dropped: a sentence that was cut off may say the opposite of what was meant.

    Returns:
        The end of the list and True. If the list is cut off, the end of its last complete entry and False.
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


def _read_fact(
    value: object, messages: Sequence[PromptMessage], known: Collection[PromptFact]
) -> ProposedFact | None:
    """Return a fact with log positions as sources, by default those of all messages; None if not usable."""
    try:
        fact = ProposedFact.model_validate({"text": value} if isinstance(value, str) else value)
    except (ValidationError, RecursionError):
        return None
    named = dict.fromkeys(messages[number - 1].seq for number in fact.sources if 0 < number <= len(messages))
    supersedes = fact.supersedes if any(each.id == fact.supersedes for each in known) else None
    sources = tuple(named) or tuple(each.seq for each in messages)
    return fact.model_copy(update={"sources": sources, "supersedes": supersedes})
