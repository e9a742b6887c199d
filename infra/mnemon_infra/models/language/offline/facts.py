"""Facts found by rules, in the form of a model's answer."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from mnemon_infra.models.language.offline.changes import KnownStatement, find_replaced_fact, is_known
from mnemon_infra.models.language.offline.statements import LONGEST, UserStatement, find_statements
from mnemon_infra.models.language.port import PromptFact, PromptMessage


class _FoundStatement(NamedTuple):
    """A statement with the number of its message, from 1.

    `speaker` is the name of the author if several people speak and the author has a name; else None.
    """

    statement: UserStatement
    number: int
    speaker: str | None

    @property
    def place(self) -> tuple[str, str | None] | None:
        slot = self.statement.rule.slot
        return (slot, self.speaker) if slot else None


def find_facts(messages: Sequence[PromptMessage], known: Sequence[PromptFact]) -> list[dict[str, Any]]:
    """Return users' new statements about themselves, as JSON objects of the form that a prompt asks for."""
    kept: list[_FoundStatement] = []
    facts_known = [KnownStatement.from_fact(fact) for fact in known]
    for found in _find_statements(messages):
        earlier = [KnownStatement.from_fact(PromptFact("", other.statement.text)) for other in kept]
        if is_known(found.statement, facts_known) or is_known(found.statement, earlier):
            continue
        # The last statement counts for a slot with one value.
        kept = [other for other in kept if other.place is None or other.place != found.place]
        kept.append(found)
    return [_build_fact(found, facts_known) for found in kept]


def _find_statements(messages: Sequence[PromptMessage]) -> Iterator[_FoundStatement]:
    users = [(number, message) for number, message in enumerate(messages, 1) if message.role == "user"]
    several = len({message.name for _, message in users}) > 1
    for number, message in users:
        for statement in find_statements(message):
            speaker = " ".join(message.name.split()) if several and message.name else None
            if len(statement.write_fact(speaker)) <= LONGEST:
                yield _FoundStatement(statement, number, speaker)


def _build_fact(found_statement: _FoundStatement, known: Sequence[KnownStatement]) -> dict[str, Any]:
    statement, rule, speaker = (
        found_statement.statement,
        found_statement.statement.rule,
        found_statement.speaker,
    )
    return {
        "text": statement.write_fact(speaker),
        "memory_type": rule.kind,
        "importance": rule.importance,
        "tier": rule.tier,
        "expires_at": statement.ends_on.isoformat() if statement.ends_on else None,
        # If several people speak, the owner of the known facts is unknown.
        "supersedes": None if speaker else find_replaced_fact(statement, known),
        "sources": [found_statement.number],
    }
