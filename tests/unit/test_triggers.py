"""Triggers that name users, as bytes."""

import pytest

from contracts.base import InvalidBody
from infra.broker.triggers import decode, encode


def test_users_come_back_as_they_went() -> None:
    users = [("acme", "u1"), ("Зебра", "анна.б *"), ("acme", '"'), ("t", "\N{GRINNING FACE}")]
    assert decode(encode(users)) == users
    assert decode(encode([])) == []


NO_USERS = (
    b"1",
    b'["ab"]',
    b'[["a"]]',
    b'[["a",1]]',
    b'[["a","b","c"]]',
    b'[["a",""]]',
    b'[["\\u0000","b"]]',
)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"{}", b"\xff", b"null", *(b'{"users":%b}' % users for users in NO_USERS)]
)
def test_what_names_no_users_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidBody, match="users: expected"):
        decode(body)
