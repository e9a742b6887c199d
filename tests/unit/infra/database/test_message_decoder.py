"""The fast decoder accepts only bodies that the contract accepts, and reads the same values."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon_contracts.base import BODY_LIMIT, InvalidBody
from mnemon_contracts.events.chat import MessageV1
from mnemon_infra.database.projections import message_parser

_ANY: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
_TIME = st.datetimes(timezones=st.none() | st.just(UTC)).map(lambda moment: moment.isoformat())
_CALL = st.fixed_dictionaries({"name": st.text(max_size=3)})
_MESSAGES = st.fixed_dictionaries(
    {},
    optional={
        "role": st.sampled_from(["user", "assistant", "tool", "system", "boss"]) | _ANY,
        "content": st.text(max_size=20) | _ANY,
        "id": st.text(max_size=4) | st.text(min_size=250, max_size=260) | _ANY,
        "sent_at": _TIME | st.text(alphabet="0123456789-T:Z+ .", max_size=25) | _ANY,
        "name": st.text(max_size=4) | _ANY,
        "task_id": st.text(max_size=4) | _ANY,
        "tool_calls": st.lists(_CALL | _ANY, max_size=2) | _ANY,
        "metadata": st.dictionaries(st.text(max_size=3), _ANY, max_size=2) | _ANY,
        "unknown": _ANY,
    },
)


@pytest.mark.long
@given(_MESSAGES.map(lambda message: json.dumps(message).encode()) | st.binary(max_size=60))
def test_fast_decoder_agrees_with_the_contract(body: bytes) -> None:
    fast = message_parser.parse_message(body)
    if fast is None:
        return
    whole = MessageV1.parse(body)
    assert (fast.role, fast.content, fast.id, fast.name, fast.task_id) == (
        whole.role,
        whole.content,
        whole.id,
        whole.name,
        whole.task_id,
    )
    assert fast.compute_sent_time() == (whole.sent_at.timestamp() if whole.sent_at else None)


@pytest.mark.parametrize(
    "body",
    [
        b'{"role":"user","content":"hi"}',
        '{"role":"user","content":"Привет","sent_at":"2026-11-21T10:00:00+03:00"}'.encode(),
        b'{"role":"assistant","content":"","tool_calls":[{"name":"a","arguments":{"x":[1]}}],"more":1}',
    ],
)
def test_fast_decoder_accepts_ordinary_messages(body: bytes) -> None:
    assert message_parser.parse_message(body) is not None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"role":"user","content":"a\\u0000b"}', "content"),
        (b'{"role":"user","content":"x","metadata":{"a":{"b":"\\u0000"}}}', "metadata"),
        (b'{"role":"user","content":"x","metadata":{"n":1e999999}}', "metadata"),
        (b'{"role":"user","content":"x","z":"\xff"}', "body"),
        (b'{"role":"user","content":"' + b"x" * BODY_LIMIT + b'"}', "body"),
        (b'{"role":"user"}', "content"),
        (b'{"role":"boss","content":"x"}', "role"),
        (b'{"role":"user","content":"x","sent_at":5}', "sent_at"),
        (b'{"role":"user","content":"x","id":""}', "id"),
    ],
)
def test_unstorable_value_is_left_to_the_contract_which_names_the_field(body: bytes, field: str) -> None:
    assert message_parser.parse_message(body) is None
    with pytest.raises(InvalidBody) as caught:
        MessageV1.parse(body)
    assert caught.value.field == field


def test_a_time_without_an_offset_is_utc() -> None:
    message = message_parser.parse_message(b'{"role":"user","content":"x","sent_at":"2026-11-21T10:00:00"}')
    assert message is not None
    assert message.compute_sent_time() == datetime(2026, 11, 21, 10, tzinfo=UTC).timestamp()
