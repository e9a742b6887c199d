"""Subjects: every id is encoded and decoded without loss, and other spellings are refused."""

import sys
import unicodedata
from urllib.parse import quote

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mnemon_contracts import subjects
from mnemon_contracts.base import ID_LIMIT
from mnemon_contracts.subjects import (
    Address,
    InvalidId,
    InvalidSubject,
    decode_token,
    encode_token,
    parse_subject,
)

TRICKY = ".*>%-~_ \t\r\n\x01\x1f\x7f\x85\xa0\u1680\u2003\u2028\u202f\u205f\u3000\u200b\ufeffaZ0$/:@+éЖ漢😀"

identifiers = st.one_of(
    st.text(min_size=1),
    st.text(st.sampled_from(TRICKY), min_size=1),
    st.sampled_from(["-", "%2D", "%2E", "v1", "_"]),
).filter(lambda text: "\0" not in text and len(text.encode()) <= ID_LIMIT)

chat_events = st.sampled_from(["message", "started", "cleared"])
versions = st.integers(min_value=1, max_value=999_999)


@given(identifiers)
def test_every_id_comes_back(identifier: str) -> None:
    assert decode_token(encode_token(identifier)) == identifier


@given(identifiers)
def test_no_id_escapes_its_token(identifier: str) -> None:
    token = encode_token(identifier)
    assert token
    assert token != subjects.CURRENT
    assert not set(token) & set(".*>")
    assert not any(character.isspace() or unicodedata.category(character) == "Cc" for character in token)


def test_every_white_space_and_control_character_is_encoded() -> None:
    """The grammar lists these characters one by one; the list must have all that Python knows."""
    characters = [chr(point) for point in range(1, sys.maxunicode + 1)]
    unsafe = [each for each in characters if each.isspace() or unicodedata.category(each) == "Cc"]
    assert [each for each in unsafe if encode_token(each) == each] == []


@given(st.tuples(identifiers, identifiers))
def test_two_ids_never_share_a_token(pair: tuple[str, str]) -> None:
    one, other = pair
    assert (encode_token(one) == encode_token(other)) == (one == other)


@given(identifiers, identifiers, st.none() | identifiers, chat_events, versions)
def test_chat_subject_parses_into_what_it_was_made_of(
    tenant: str, user: str, conversation: str | None, event: str, version: int
) -> None:
    subject = subjects.build_chat_subject(tenant, user, conversation, event, version)
    assert parse_subject(subject) == Address("chat", tenant, user, conversation, event, version)
    assert len(subject.split(".")) == 6


@given(identifiers, identifiers, st.sampled_from(["fact.saved", "profile.set"]), versions)
def test_memory_subject_parses_into_what_it_was_made_of(
    tenant: str, user: str, event: str, version: int
) -> None:
    parsed = parse_subject(subjects.build_memory_subject(tenant, user, event, version))
    assert parsed == Address("memory", tenant, user, None, event, version)


@given(identifiers, identifiers, st.sampled_from(["history", "context"]), versions)
def test_ask_subject_parses_into_what_it_was_made_of(tenant: str, user: str, verb: str, version: int) -> None:
    parsed = parse_subject(subjects.build_ask_subject(tenant, user, verb, version))
    assert parsed == Address("ask", tenant, user, None, verb, version)


@given(identifiers, identifiers)
def test_owner_comes_back_from_notices_and_triggers(tenant: str, user: str) -> None:
    assert subjects.parse_owner(subjects.build_notice_subject(tenant, user)) == (tenant, user)
    assert subjects.parse_owner(subjects.build_trigger_subject("persist", tenant, user)) == (tenant, user)


@given(identifiers, identifiers, identifiers, identifiers, st.none() | identifiers)
def test_filters_of_a_user_match_that_user_only(
    tenant: str, user: str, other_tenant: str, other_user: str, conversation: str | None
) -> None:
    assume((tenant, user) != (other_tenant, other_user))
    filters = subjects.build_user_filters(tenant, user)
    own = [
        subjects.build_chat_subject(tenant, user, conversation, "message"),
        subjects.build_memory_subject(tenant, user, "fact.saved"),
    ]
    others = [
        subjects.build_chat_subject(other_tenant, other_user, conversation, "message"),
        subjects.build_memory_subject(other_tenant, other_user, "fact.saved"),
    ]
    assert [_matches(pattern, subject) for pattern, subject in zip(filters, own, strict=True)] == [True, True]
    assert not any(_matches(pattern, subject) for pattern in filters for subject in others)


@given(identifiers)
def test_another_spelling_is_refused_with_the_expected_one(identifier: str) -> None:
    expected = encode_token(identifier)
    spelled_out = "".join(f"%{byte:02X}" for byte in identifier.encode())
    assume(spelled_out != expected)
    with pytest.raises(InvalidSubject) as refusal:
        parse_subject(f"chat.acme.{spelled_out}.-.message.v1")
    assert str(refusal.value) == f"token {spelled_out!r} must be spelled {expected!r}"


@given(st.text())
def test_a_token_is_either_the_one_spelling_or_refused(token: str) -> None:
    try:
        identifier = decode_token(token)
    except InvalidSubject:
        return
    assert encode_token(identifier) == token


@given(st.text(st.characters()) | st.lists(st.text(st.sampled_from("chat.memory.ask.%2Dv1-"))).map(".".join))
def test_parse_raises_nothing_but_invalid_subject(subject: str) -> None:
    try:
        address = parse_subject(subject)
    except InvalidSubject:
        return
    assert address.space == subject.partition(".")[0]


@pytest.mark.parametrize(
    ("identifier", "problem"),
    [
        ("", "must not be empty"),
        ("a\0b", r"U\+0000"),
        ("x" * 256, "has 256 bytes, and the limit is 255"),
        ("Ж" * 128, "has 256 bytes, and the limit is 255"),
        ("a\ud800", "lone surrogate"),
    ],
)
def test_an_id_that_cannot_be_kept_is_refused(identifier: str, problem: str) -> None:
    with pytest.raises(InvalidId, match=problem):
        encode_token(identifier)


def test_the_longest_id_is_taken() -> None:
    assert decode_token(encode_token("." * 255)) == "." * 255


@pytest.mark.parametrize(
    ("identifier", "token"),
    [
        ("u42", "u42"),
        ("иван", "иван"),
        ("ivan@example.com", "ivan@example%2Ecom"),
        ("a b", "a%20b"),
        ("\u2003", "%E2%80%83"),
        ("100%", "100%25"),
        ("-", "%2D"),
        ("--", "--"),
        ("%2D", "%252D"),
    ],
)
def test_id_is_encoded_in_the_documented_spelling(identifier: str, token: str) -> None:
    assert encode_token(identifier) == token


@pytest.mark.parametrize(
    ("subject", "problem"),
    [
        ("chat.acme.u%2e.-.message.v1", r"must be spelled 'u%2E'"),
        ("chat.acme.%61.-.message.v1", r"must be spelled 'a'"),
        ("chat.acme.-.-.message.v1", r"must be spelled '%2D'"),
        ("chat.acme.50%.-.message.v1", r"must be spelled '50%25'"),
        ("chat.acme.%FF.-.message.v1", "token '%FF'"),
        ("chat.acme.%00.-.message.v1", r"U\+0000"),
        ("chat.acme..-.message.v1", "must not be empty"),
        ("chat.acme.\ud800.-.message.v1", "surrogates not allowed"),
        ("chat.acme.u42.message.v1", "expected chat.<tenant>.<user>.<conversation>.<event>.v<N>"),
        ("memory.acme.u42.saved.v1", "expected memory.<tenant>.<user>.<thing>.<event>.v<N>"),
        ("ask.acme.u42.v1", "expected ask.<tenant>.<user>.<verb>.v<N>"),
        ("work.persist.acme.u42", "expected a subject of chat, memory or ask"),
        ("", "expected a subject of chat, memory or ask"),
        ("chat.acme.u42.-.Message.v1", "name 'Message'"),
        ("chat.acme.u42.-.message.1", "version '1': expected v1, v2"),
        ("chat.acme.u42.-.message.v0", "version 'v0'"),
        ("chat.acme.u42.-.message.v01", "version 'v01'"),
        ("chat.acme.u42.-.message.v1\n", "version"),
    ],
)
def test_a_wrong_subject_is_refused_by_the_part_that_is_wrong(subject: str, problem: str) -> None:
    with pytest.raises(InvalidSubject, match=problem):
        parse_subject(subject)


@pytest.mark.parametrize("subject", ["changed.acme", "work.persist.acme", "chat.acme.u42.-.message.v1", ""])
def test_an_owner_is_read_from_notices_and_triggers_only(subject: str) -> None:
    with pytest.raises(InvalidSubject, match="expected changed"):
        subjects.parse_owner(subject)


def test_dead_letters_keep_the_original_subject_even_when_it_is_wrong() -> None:
    assert subjects.build_dead_letter_subject("persist", "chat.a.%zz") == "dead.persist.chat.a.%zz"


def test_percent_encoding_is_that_of_the_standard_library() -> None:
    assert encode_token("\u3000") == quote("\u3000")


def _matches(pattern: str, subject: str) -> bool:
    """Return whether a subject matches a pattern that ends in `>`, by the rules of NATS."""
    prefix = pattern.removesuffix(">")
    return subject.startswith(prefix) and len(subject) > len(prefix)


@given(identifiers, identifiers, st.none() | identifiers, st.integers(0, 2**32))
def test_every_spelling_has_the_same_origin(
    tenant: str, user: str, conversation: str | None, choice: int
) -> None:
    def spelled(identifier: str) -> str:
        token = encode_token(identifier)
        return "".join(f"%{byte:02x}" for byte in identifier.encode()) if choice % 3 else token

    place = subjects.CURRENT if conversation is None else spelled(conversation)
    assert subjects.find_origin(f"chat.{spelled(tenant)}.{spelled(user)}.{place}.MESSAGE.v0") == (
        "chat", (tenant, user), conversation
    )  # fmt: skip
    dead = subjects.build_dead_letter_subject(
        "persist", f"memory.{spelled(tenant)}.{spelled(user)}.fact.saved.v1"
    )
    assert subjects.find_letter_origin(dead) == ("memory", (tenant, user), None)


@pytest.mark.parametrize(
    ("subject", "origin"),
    [
        ("chat.acme.ana", ("chat", ("acme", "ana"), None)),
        ("chat.acme.an%61.%FF.message.v1", ("chat", ("acme", "ana"), "")),
        ("chat.acme.ana\x01", ("chat", ("acme", "ana\x01"), None)),
        ("chat.acme.%FF.-.message.v1", None),
        ("chat.acme.ana%00.-.message.v1", None),
        ("chat.acme", None),
        ("work.persist.acme.ana", None),
    ],
)
def test_find_origin_reads_invalid_subjects(subject: str, origin: object) -> None:
    assert subjects.find_origin(subject) == origin


def test_a_dead_letter_has_no_wild_card_in_its_subject() -> None:
    assert (
        subjects.build_dead_letter_subject("persist", "chat.*.a\x0b\0.>")
        == "dead.persist.chat.%2A.a%0B%00.%3E"
    )
