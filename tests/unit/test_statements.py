"""What every read pays for."""

import pytest

from infra.database import reading
from infra.database.engine import Statement

STATEMENTS = [value for value in vars(reading).values() if isinstance(value, Statement)]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_psycopg_keeps_what_it_read_of_a_statement(statement: Statement) -> None:
    """Longer ones it reads anew each time, which takes as long as the database's answer."""
    assert len(statement._sql) <= 4096
