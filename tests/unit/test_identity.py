"""What an event is known by."""

from hypothesis import given
from hypothesis import strategies as st

from contracts.identity import event_identity, first_conversation, scoped, started_conversation


def test_the_header_goes_before_the_body_and_the_body_before_the_place() -> None:
    assert event_identity("a", "u", "h", "b", "LOG", 7) == "h"
    assert event_identity("a", "u", None, "b", "LOG", 7) == "b"
    assert event_identity("a", "u", None, None, "LOG", 7) == "LOG:7"


@given(st.text(min_size=1), st.text(min_size=1), st.text(min_size=1))
def test_a_scope_is_for_the_transport_only(tenant: str, user: str, event_id: str) -> None:
    assert event_identity(tenant, user, scoped(tenant, user, event_id), event_id, "LOG", 7) == event_id


def test_a_header_that_only_looks_like_a_scope_is_an_id_of_its_own() -> None:
    assert event_identity("a", "u", "chat1:5", "5", "LOG", 7) == "chat1:5"
    assert event_identity("a", "u", scoped("a", "other", "5"), "5", "LOG", 7) == scoped("a", "other", "5")


def test_scopes_differ_where_users_do() -> None:
    owners = [("a", "bc"), ("ab", "c"), ("abc", ""), ("", "abc"), ("a", "b"), ("b", "a")]
    assert len({scoped(*owner, "1") for owner in owners}) == len(owners)


def test_conversations_follow_from_ids_alone() -> None:
    assert first_conversation("a", "u") == first_conversation("a", "u")
    owners = [("a", "u"), ("a", "v"), ("b", "u")]
    assert len({first_conversation(*owner) for owner in owners}) == 3
    assert started_conversation("a", "u", "e1") != started_conversation("a", "u", "e2")
