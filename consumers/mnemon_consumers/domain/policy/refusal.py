"""Rejection of proposed facts by the rules of the policy."""

import unicodedata
from functools import lru_cache
from typing import Final

from mnemon_consumers.domain.policy.commands import is_command
from mnemon_consumers.domain.policy.questions import is_question
from mnemon_consumers.domain.policy.secrets.detection import find_secret
from mnemon_consumers.domain.policy.wording import join_lines
from mnemon_contracts.events.memory import Reason
from mnemon_contracts.settings.groups import Policy

CACHED_TEXTS: Final = 256
"""Maximum number of texts whose result a process caches: a proposal is checked twice."""


@lru_cache(maxsize=CACHED_TEXTS)
def find_refusal(text: str, policy: Policy) -> tuple[Reason, str] | None:
    """Return why the policy rejects a text as a fact, as a code and an explanation; None if it does not.

    Secrets are checked first, so that a text which is also too long or too short is reported as a secret. The
    explanation never repeats a secret. A run of white space counts as one character; white space at both ends
    does not count.
    """
    said = join_lines(text)
    if (what := find_secret(said, policy)) is not None:
        return "secret", f"The text looks like {what}."
    if (length := _measure_length(said)) < policy.min_length:
        counted = " A Chinese, Japanese or Korean character counts as two." if length > len(said) else ""
        return (
            "too_short",
            f"The text has {length} characters; a fact has at least {policy.min_length}.{counted}",
        )
    if len(said) > policy.max_length:
        return "too_long", f"The text has {len(said):,} characters; a fact has at most {policy.max_length}."
    if not any(character.isalpha() for character in said):
        return "too_short", "The text has no words."
    if policy.refuse_questions and is_question(said):
        return "question", "The text is a question, and a fact is a statement."
    if policy.refuse_commands and is_command(said):
        return "command", "The text is a command, and a fact is a statement."
    return None


def _measure_length(text: str) -> int:
    """Return the number of characters, where each wide letter, as of Chinese, counts as two.

    A sentence of such letters has about half of the characters of the same sentence in Latin script.
    """
    wide = (each for each in text if each.isalpha() and unicodedata.east_asian_width(each) == "W")
    return len(text) + sum(1 for _ in wide)
