"""Bodies of triggers: users, and windows that were given up."""

import pytest

from mnemon_contracts.base import InvalidBody
from mnemon_infra.broker.streams.triggers import (
    GivenUpWindow,
    decode_given_up_window,
    decode_users,
    encode_users,
)


def test_trigger_round_trips_its_users() -> None:
    users = [("acme", "u1"), ("Зебра", "анна.б *"), ("acme", '"'), ("t", "\N{GRINNING FACE}")]
    assert decode_users(encode_users(users)) == users
    assert decode_users(encode_users([])) == []


NESTED = b'{"x":' * 5000
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
    "body",
    [b"", b"{", b"[]", b"{}", b"\xff", b"null", NESTED, *(b'{"users":%b}' % users for users in NO_USERS)],
)
def test_trigger_without_users_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidBody, match="users: must be a list"):
        decode_users(body)


def test_a_window_that_was_given_up_is_read() -> None:
    body = b'{"conversation":"talk","from_seq":3,"to_seq":9223372036854775807,"later":1}'
    assert decode_given_up_window(body) == GivenUpWindow("talk", 3, 2**63 - 1)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        NESTED,
        b'{"conversation":"","from_seq":1,"to_seq":2}',
        b'{"conversation":"a\\u0000","from_seq":1,"to_seq":2}',
        b'{"conversation":"%b","from_seq":1,"to_seq":2}' % (b"c" * 256),
        b'{"conversation":"talk","from_seq":-1,"to_seq":2}',
        b'{"conversation":"talk","from_seq":1,"to_seq":9223372036854775808}',
        b'{"conversation":"talk","from_seq":1,"to_seq":2,"attempts":2147483648}',
    ],
)
def test_a_window_that_the_database_cannot_hold_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidBody, match="window: must be an object"):
        decode_given_up_window(body)
