"""Answers of the server's model. The same request always gets the same answer."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from mnemon_consumers.extract.answer_parser import build_schema

_LIKES = re.compile(r"I like (?P<en>[\w -]+)|Я люблю (?P<ru>[\w -]+)")
_PAIR = re.compile(
    r"^\d+\. newer: \[(?P<newer>[^]]+)\] (?:\([^)]*\) )?(?P<newer_text>.*)\n"
    r" +older: \[(?P<older>[^]]+)\] (?:\([^)]*\) )?(?P<older_text>.*)$",
    re.MULTILINE,
)
_NUMBER = re.compile(r"\[?(\d+)[.\]]")
_WORD = re.compile(r"[^\W\d_]{4,}")
_NAMED_WORDS = 12

_TEXT_NAMES = ("text", "fact", "content", "statement")


class ReceivedRequest(NamedTuple):
    """A request, as read from a wire format.

    Attributes:
        text: text of the user's message, without instructions.
        schema: JSON Schema of the answer; None if the request gives no schema.
        beginning: the part of the request that the provider may cache; empty if there is none.
        most_tokens: maximum number of tokens of the answer; None: no limit.
    """

    model: str
    instructions: str
    text: str
    schema: Mapping[str, Any] | None = None
    beginning: str = ""
    most_tokens: int | None = None


class LikedFact(NamedTuple):
    """A fact that the model finds in a text.

    Attributes:
        number: number of the line with the fact, else of the last numbered line before it; None if no line
            up to the fact has a number.
    """

    number: int | None
    text: str


def find_liked_facts(text: str) -> Iterator[LikedFact]:
    """Yield a fact for each `I like ...` and each `Я люблю ...` in a text."""
    number: int | None = None
    for line in text.splitlines():
        beginning = _NUMBER.match(line)
        number = int(beginning[1]) if beginning else number
        for found in _LIKES.finditer(line):
            fact = (
                f"User likes {found['en'].strip()}"
                if found["en"]
                else f"Пользователь любит {found['ru'].strip()}"
            )
            yield LikedFact(number, fact)


class ShownPair(NamedTuple):
    """Two facts that the model is asked to compare: their ids and texts."""

    newer: str
    older: str
    newer_text: str
    older_text: str


def find_pairs(text: str) -> list[ShownPair]:
    """Return the pairs of facts that a request's text asks to compare."""
    before = text.partition("\nMessages:\n")[0]
    return [ShownPair(**found.groupdict()) for found in _PAIR.finditer(before)]


def relate_nothing(pair: ShownPair) -> str:
    """Return `different` for any pair."""
    return "different"


def write_answer(question: ReceivedRequest, relate: Callable[[ShownPair], str] = relate_nothing) -> str:
    """Return the answer of the model: the facts of the text as JSON, or a sentence about the text.

    The JSON has the request's schema, or the schema of `extract` if the request asks for JSON without a
    schema.

    Args:
        question: the request to answer.
        relate: function that returns the relation of a pair, such as `same`.
    """
    wanted = question.schema or (build_schema() if "JSON" in question.instructions else None)
    if wanted is None:
        return _write_sentence(question.text)
    filled = _fill_schema(wanted, question)
    if "pairs" in wanted.get("properties", {}):
        filled["pairs"] = [
            {"newer": pair.newer, "older": pair.older, "relation": relate(pair)}
            for pair in find_pairs(question.text)
        ]
    return json.dumps(filled, ensure_ascii=False)


def _write_sentence(text: str) -> str:
    words = list(dict.fromkeys(_WORD.findall(text)))
    step = max(1, len(words) // _NAMED_WORDS)
    named = ", ".join(words[::step][:_NAMED_WORDS])
    is_russian = len(re.findall("[а-яё]", text.lower())) * 2 > len(re.findall("[^\\W\\d_]", text))
    return f"Говорили о том, что есть: {named}." if is_russian else f"They spoke of what there is: {named}."


def _fill_schema(wanted: Mapping[str, Any], question: ReceivedRequest) -> Any:
    """Return a value of the schema `wanted`.

    A list of objects in this value has one object for each fact in the text of `question`.
    """
    definitions = wanted.get("$defs", {})

    def resolve(part: Mapping[str, Any]) -> Mapping[str, Any]:
        if "$ref" in part:
            named: Mapping[str, Any] = definitions[str(part["$ref"]).rpartition("/")[2]]
            return named
        return part

    def build_value(part: Mapping[str, Any], name: str, fact: LikedFact | None) -> Any:
        part = resolve(part)
        options = [resolve(option) for option in part.get("anyOf", ())]
        kinds = part.get("type", ())
        if any(option.get("type") == "null" for option in options) or "null" in kinds:
            return None
        if options:
            return build_value(options[0], name, fact)
        if "const" in part or "enum" in part:
            return part.get("const", part.get("enum", [None])[0])
        match part.get("type"):
            case "object":
                return {
                    key: build_value(inner, key, fact) for key, inner in part.get("properties", {}).items()
                }
            case "array" if fact is None and resolve(part.get("items", {})).get("type") == "object":
                return [build_value(part["items"], name, found) for found in find_liked_facts(question.text)]
            case "array":
                inner = resolve(part.get("items", {})).get("type")
                if fact is None or fact.number is None or inner not in ("integer", "string"):
                    return []
                return [fact.number if inner == "integer" else str(fact.number)]
            case "string":
                return fact.text if fact and name in _TEXT_NAMES else ""
            case "integer" | "number":
                return 5
            case "boolean":
                return False
            case _:
                return None

    return build_value(wanted, "", None)
