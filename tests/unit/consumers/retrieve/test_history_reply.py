"""`FastHistory` encodes replies of `history` as their contract does."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon_consumers.retrieve.history_reply import FastHistory, HistoryMessage, MessageTooLong
from mnemon_contracts.events.chat import Role
from mnemon_contracts.verbs.ask import HistoryReplyV1

_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
_ID = _TEXT.filter(bool)
_SEQ = st.integers(0, 2**63 - 1)
_MESSAGES = st.builds(
    HistoryMessage,
    role=st.sampled_from(["user", "assistant", "tool", "system"]),
    content=_TEXT,
    seq=_SEQ,
    id=_ID,
    sent_at=st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=st.just(UTC)),  # noqa: DTZ001
    name=st.none() | _TEXT,
    task_id=st.none() | _ID,
)


@given(
    st.builds(
        FastHistory,
        seen_seq=_SEQ,
        conversation=_ID,
        messages=st.lists(_MESSAGES, max_size=3),
        left_out=st.none() | st.integers(1, 1000),
    )
)
def test_fast_history_reply_equals_the_contract(fast: FastHistory) -> None:
    body = fast.encode_body()
    read = HistoryReplyV1.parse(body)
    assert json.loads(read.encode_body()) == json.loads(body)


@given(st.lists(_MESSAGES, min_size=1, max_size=6, unique_by=lambda each: each.seq), st.integers(0, 6))
def test_reply_has_as_many_of_the_newest_messages_as_fit(
    messages: list[HistoryMessage], fitting: int
) -> None:
    whole = FastHistory(7, "c", messages)
    left_out = max(0, len(messages) - fitting)
    expected = FastHistory(7, "c", messages[left_out:], left_out or None)
    most_bytes = len(expected.encode_body())
    if fitting:
        assert whole.encode_newest(most_bytes) == expected.encode_body()
    else:
        with pytest.raises(MessageTooLong):
            whole.encode_newest(most_bytes)


def test_entry_that_names_tools_is_left_out_with_its_message() -> None:
    def entry(seq: int, role: Role, content: str) -> HistoryMessage:
        return HistoryMessage(role, content, seq, "id", datetime(2026, 1, 1, tzinfo=UTC))

    long = [entry(1, "assistant", "x" * 1000), entry(1, "system", "Tools used: search")]
    newer = entry(2, "user", "thanks")
    expected = FastHistory(7, "c", [newer], 2).encode_body()
    assert FastHistory(7, "c", [*long, newer]).encode_newest(1000) == expected
    with pytest.raises(MessageTooLong):
        FastHistory(7, "c", long).encode_newest(1000)
