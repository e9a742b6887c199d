"""Identity of an event."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon_contracts.base import ID_LIMIT, InvalidBody, check_identifier
from mnemon_contracts.identity import (
    derive_first_conversation,
    derive_started_conversation,
    identify_event,
    scope_event_id,
)

texts = st.text(min_size=1)


def test_header_precedes_the_body_and_the_body_precedes_the_position() -> None:
    assert identify_event("a", "u", "h", "b", "LOG", 7) == "h"
    assert identify_event("a", "u", None, "b", "LOG", 7) == "b"
    assert identify_event("a", "u", None, None, "LOG", 7) == "LOG:7"


@given(texts, texts, texts)
def test_a_scope_is_for_the_transport_only(tenant: str, user: str, event_id: str) -> None:
    assert (
        identify_event(tenant, user, scope_event_id(tenant, user, event_id), event_id, "LOG", 7) == event_id
    )


def test_a_header_that_only_looks_like_a_scope_is_an_id_of_its_own() -> None:
    assert identify_event("a", "u", "chat1:5", "5", "LOG", 7) == "chat1:5"
    assert identify_event("a", "u", scope_event_id("a", "other", "5"), "5", "LOG", 7) == scope_event_id(
        "a", "other", "5"
    )


def test_scopes_differ_where_users_do() -> None:
    owners = [("a", "bc"), ("ab", "c"), ("abc", ""), ("", "abc"), ("a", "b"), ("b", "a")]
    assert len({scope_event_id(*owner, "1") for owner in owners}) == len(owners)


def test_conversations_follow_from_ids_alone() -> None:
    assert derive_first_conversation("a", "u") == derive_first_conversation("a", "u")
    owners = [("a", "u"), ("a", "v"), ("b", "u")]
    assert len({derive_first_conversation(*owner) for owner in owners}) == 3
    assert derive_started_conversation("a", "u", "e1") != derive_started_conversation("a", "u", "e2")


@pytest.mark.parametrize(
    ("header", "problem"),
    [("a\0b", r"U\+0000"), ("x" * 256, "256 bytes"), ("Ж" * 128, "256 bytes"), ("a\udcff", "lone surrogate")],
)
def test_a_header_that_cannot_be_an_id_is_named(header: str, problem: str) -> None:
    with pytest.raises(InvalidBody, match=problem) as refusal:
        identify_event("a", "u", header, "b", "LOG", 7)
    assert refusal.value.field == "Nats-Msg-Id"


@given(st.text(st.sampled_from("ab \t\n\r\x0b\x7f\x85\xa0\u2003\u2028"), min_size=1), texts, texts)
def test_a_scoped_id_arrives_as_it_was_sent(event_id: str, tenant: str, user: str) -> None:
    header = scope_event_id(tenant, user, event_id)
    assert header.strip().translate({0xA: " ", 0xD: " "}) == header
    assert identify_event(tenant, user, header, event_id, "LOG", 7) == event_id


@given(st.text(st.characters() | st.sampled_from("a\0"), max_size=300))
def test_check_identifier_accepts_storable_text_up_to_the_limit(identifier: str) -> None:
    is_storable = "\0" not in identifier and not any("\ud800" <= each <= "\udfff" for each in identifier)
    if is_storable and len(identifier.encode()) <= ID_LIMIT:
        assert check_identifier("id", identifier) == identifier
    else:
        with pytest.raises(InvalidBody):
            check_identifier("id", identifier)


@pytest.mark.parametrize("identifier", ["a" * (ID_LIMIT + 1), "a\0", "\ud800", "ж" * (ID_LIMIT // 2 + 1)])
def test_check_identifier_refuses_what_stores_cannot_hold(identifier: str) -> None:
    with pytest.raises(InvalidBody):
        check_identifier("id", identifier)
