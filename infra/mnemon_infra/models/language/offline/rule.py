"""What a rule is: a form of words by which people speak of themselves, and what such a sentence is worth."""

import re
from typing import Literal, NamedTuple

from mnemon_contracts.events.memory import Kind, Tier

Slot = Literal["name", "home", "work", "age", "status"]
"""What there is one of at a time: a newer one takes the place of the older one."""


class Rule(NamedTuple):
    """A rule.

    Attributes:
        pattern: of the words; whoever applies it asks whether a clause begins there.
        kind: of the fact.
        importance: of the fact, 1 to 10.
        tier: of the fact.
        slot: what the fact fills.
        needs: a date that the sentence must name: 1 one that lies ahead, -1 one that lies behind.
        ends: something that was so is so no longer.
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
        rules: the first that applies counts.
        opening: what a sentence begins with that says nothing.
        joint: what stands before a clause within a sentence.
        hedge: before a statement, it makes something else of it: a condition, a wish, the words of another.
        request: a clause at the end of a sentence that asks for something, or asks something.
        user: what a user is called.
    """

    rules: tuple[Rule, ...]
    opening: re.Pattern[str]
    joint: re.Pattern[str]
    hedge: re.Pattern[str]
    request: re.Pattern[str]
    user: str


def any_of(lines: str) -> str:
    """A part of a pattern: alternatives, which stand apart by `|` and may be written over several lines."""
    return f"(?:{''.join(line.strip() for line in lines.splitlines())})"


def forms(lines: str) -> re.Pattern[str]:
    """A pattern of alternatives that begin with a whole word."""
    return re.compile(rf"(?<![\w'-]){any_of(lines)}", re.IGNORECASE)
