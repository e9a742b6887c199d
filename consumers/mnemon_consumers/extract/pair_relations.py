"""Relations of fact pairs, read from an untrusted answer."""

from collections.abc import Iterable
from contextlib import suppress
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationError, WithJsonSchema

from mnemon_contracts.base import Contract, Identifier
from mnemon_contracts.fact_pairs import FactPair, Relation


def strip_brackets(value: object) -> object:
    """Return an id without the brackets in which the request shows the id; any other value is unchanged."""
    return value.strip().strip("[]") if isinstance(value, str) else value


def _normalise_word(value: object) -> object:
    """Return a word without the space, final full stop and capitals that models add."""
    return value.strip().strip(".").lower() if isinstance(value, str) else value


_FactId = Annotated[Identifier, BeforeValidator(strip_brackets), WithJsonSchema({"type": "string"})]


class ComparedPair(Contract):
    """Relation of two known facts, as the answer of a model gives it."""

    newer: _FactId = Field(description="Id of the newer fact of the pair.")
    older: _FactId = Field(description="Id of the older fact of the pair.")
    relation: Annotated[Relation, BeforeValidator(_normalise_word)] = Field(
        description="Relation of the two facts; different, if you are not sure."
    )


def parse_relations(listed: object, pairs: Iterable[FactPair]) -> dict[FactPair, Relation]:
    """Return the relations that an answer gives for pairs of facts.

    If `listed` is not a list, the result is empty.

    Returns:
        Relations by pair. A pair with two different answers counts as unanswered.
    """
    said: dict[frozenset[str], set[Relation]] = {}
    for value in listed if isinstance(listed, list) else ():
        with suppress(ValidationError, RecursionError):
            compared = ComparedPair.model_validate(value)
            said.setdefault(frozenset((compared.newer, compared.older)), set()).add(compared.relation)
    relations: dict[FactPair, Relation] = {}
    for pair in pairs:
        answers = said.get(frozenset((pair.fact_id, pair.other_id)), set())
        if len(answers) == 1:
            (relations[pair],) = answers
    return relations
