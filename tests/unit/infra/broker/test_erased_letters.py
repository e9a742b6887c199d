"""Dead letters of answers in the scope of an erasure."""

from datetime import UTC, datetime, timedelta

import pytest

from mnemon_infra.broker.dead_letters.listing import Letter
from mnemon_infra.broker.erasure.scope import ErasedUser

AT = datetime(2026, 1, 31, tzinfo=UTC)
ERASED = ErasedUser(("acme", "u1"), 10, AT)


def build_letter(body: bytes, at: datetime = AT) -> Letter:
    subject = "memory.acme.u1.window.answered.v1"
    return Letter(1, at, "extract", "unreadable", "", subject, "", 0, None, {}, body)


def test_position_of_the_window_decides() -> None:
    assert ERASED.removes_letter(build_letter(b'{"from_seq":9}'))
    assert not ERASED.removes_letter(build_letter(b'{"from_seq":10}'))


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"from_seq":"9"}', b"[" * 5000])
def test_without_a_position_the_time_decides(body: bytes) -> None:
    assert ERASED.removes_letter(build_letter(body, AT - timedelta(seconds=1)))
    assert not ERASED.removes_letter(build_letter(body))
