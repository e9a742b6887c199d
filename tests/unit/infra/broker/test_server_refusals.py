"""Errors about servers: old versions, and errors of PostgreSQL that pass."""

import pytest
from psycopg.errors import DiskFull, InsufficientPrivilege, ReadOnlySqlTransaction

from mnemon_infra.broker.connection import is_too_old
from mnemon_infra.database.engine import DatabaseUnavailable, translate_error


@pytest.mark.parametrize(
    ("version", "verdict"),
    [
        ("2.9.25", True),
        ("2.13.9", True),
        ("1.4.1", True),
        ("0.0.0-unknown", True),
        ("v2.12.0-RC.1", True),
        ("2.14.0", False),
        ("2.14.0-beta.1", False),
        ("2.100.0", False),
        ("3.0.0", False),
        ("edge", False),
        ("", False),
    ],
)
def test_old_server_is_refused(version: str, verdict: bool) -> None:
    assert is_too_old(version) is verdict


@pytest.mark.parametrize(
    ("error", "next_step"),
    [
        (DiskFull("could not extend file: No space left on device"), "make room on the disk of the database"),
        (InsufficientPrivilege("permission denied for schema mnemon"), "grant the right to the role"),
        (ReadOnlySqlTransaction("cannot execute INSERT in a read-only transaction"), "cannot execute INSERT"),
    ],
)
def test_repairable_database_errors_are_transient(error: Exception, next_step: str) -> None:
    meant = translate_error(error)
    assert isinstance(meant, DatabaseUnavailable)
    assert next_step in str(meant)
