"""Types of the rules: a form of words in which people speak of themselves, and the fact that it gives."""

import re
from typing import Literal, NamedTuple

from mnemon_contracts.events.memory import Kind, Tier

Slot = Literal["name", "home", "work", "age", "status"]
"""Properties with one value at a time: a newer value replaces the older one."""


class Rule(NamedTuple):
    """A rule.

    Attributes:
        pattern: pattern of the words; the caller checks that a clause begins there.
        kind: kind of the fact.
        importance: importance of the fact, 1 to 10.
        tier: tier of the fact.
        slot: the property that the fact fills.
        needs: a date that the sentence must name: 1 one that lies ahead, -1 one that lies behind.
        ends: the statement says that something has ended.
    """

    pattern: re.Pattern[str]
    kind: Kind
    importance: int
    tier: Tier
    slot: Slot | None = None
    needs: Literal[-1, 0, 1] = 0
    ends: bool = False


class LanguageRules(NamedTuple):
    """The rules of a language.

    Attributes:
        rules: the first that matches counts.
        opening: words without content at the beginning of a sentence.
        joint: words before a clause within a sentence.
        hedge: words before a statement that turn it into something else: a condition, a wish, a quotation.
        request: a clause at the end of a sentence that asks for something, or asks a question.
        user: the language's word for a user.
    """

    rules: tuple[Rule, ...]
    opening: re.Pattern[str]
    joint: re.Pattern[str]
    hedge: re.Pattern[str]
    request: re.Pattern[str]
    user: str


def any_of(lines: str) -> str:
    """Return a part of a pattern: alternatives, separated by `|`, which may span several lines."""
    return f"(?:{''.join(line.strip() for line in lines.splitlines())})"


def forms(lines: str) -> re.Pattern[str]:
    """Return a pattern of alternatives that begin with a whole word."""
    return re.compile(rf"(?<![\w'-]){any_of(lines)}", re.IGNORECASE)
