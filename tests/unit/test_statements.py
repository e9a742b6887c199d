"""What every read pays for."""

import pytest

from mnemon_infra.database import (
    adopting,
    batches,
    documents,
    erasing,
    facts,
    found,
    reading,
    rounds,
    sampling,
    stretches,
    summaries,
    tasks,
    uncovered,
    waiting,
    windows,
)
from mnemon_infra.database.engine import Lookup

LOOKUPS = [
    value
    for module in (
        *(reading, facts, summaries, tasks, documents, found, sampling, uncovered),
        *(windows, waiting, stretches, batches, rounds, adopting, erasing),
    )
    for value in vars(module).values()
    if isinstance(value, Lookup)
]


@pytest.mark.parametrize("lookup", LOOKUPS)
def test_psycopg_keeps_what_it_read_of_a_statement(lookup: Lookup) -> None:
    """Longer ones it reads anew each time, which takes as long as the database's answer."""
    assert len(lookup.compiled.sql) <= 4096
