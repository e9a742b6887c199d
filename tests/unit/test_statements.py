"""What every read pays for."""

import pytest

from infra.database import reading
from infra.database.engine import Lookup

LOOKUPS = [value for value in vars(reading).values() if isinstance(value, Lookup)]


@pytest.mark.parametrize("lookup", LOOKUPS)
def test_psycopg_keeps_what_it_read_of_a_statement(lookup: Lookup) -> None:
    """Longer ones it reads anew each time, which takes as long as the database's answer."""
    assert len(lookup._sql) <= 4096
