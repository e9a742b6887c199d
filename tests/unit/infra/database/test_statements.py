"""SQL statements as psycopg receives them: without placeholders to parse, and with exact constants."""

import re

import pytest
from sqlalchemy import literal, select

from mnemon_infra.database.engine import Lookup
from mnemon_infra.database.erasure import users
from mnemon_infra.database.facts import fact_repository
from mnemon_infra.database.memory import documents, scan_cursor, summaries, tasks, user_memory
from mnemon_infra.database.messages import lookup as found
from mnemon_infra.database.messages import message_ranges, sample, uncovered_messages
from mnemon_infra.database.projections import batch_recovery
from mnemon_infra.database.windows import answered_windows, batches, pending, window_repository

LOOKUPS = [
    value
    for module in (
        *(user_memory, fact_repository, summaries, tasks, documents, found, sample, uncovered_messages),
        message_ranges,
        *(window_repository, pending, answered_windows, batches, scan_cursor, batch_recovery, users),
    )
    for value in vars(module).values()
    if isinstance(value, Lookup)
]


@pytest.mark.parametrize("lookup", LOOKUPS)
def test_psycopg_neither_parses_a_lookup_nor_converts_its_constants(lookup: Lookup) -> None:
    """Parsing and conversion would take psycopg as long as the database's answer, in each run of a lookup."""
    assert "%" not in lookup.compiled
    assert set(re.findall(r"\$\d+", lookup.compiled)) == {"$1"}


def test_constant_of_a_lookup_keeps_its_white_space_and_signs() -> None:
    constant = "two  spaces,\n100 %, %(name)s"
    assert f"'{constant}'" in Lookup(select(literal(constant))).compiled
