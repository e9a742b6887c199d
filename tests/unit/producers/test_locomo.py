"""LoCoMo files as events: constructed files, and the published files in the folder `LOCOMO_DATA`."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mnemon_contracts.events.chat import MessageV1, StartedV1
from mnemon_producers.locomo import LocomoConversation, NotLocomo, read_conversations

DATA = Path(os.environ.get("LOCOMO_DATA", Path(__file__).parents[4] / "shared" / "data" / "locomo"))


def turn(speaker: str, dia_id: str, text: str, **more: Any) -> dict[str, Any]:
    return {"speaker": speaker, "dia_id": dia_id, "text": text, **more}


def sample(**conversation: Any) -> dict[str, Any]:
    return {
        "sample_id": "conv-1",
        "conversation": {"speaker_a": "Ann", "speaker_b": "Bob", **conversation},
        "qa": [],
    }


TWO_SESSIONS = sample(
    session_10=[turn("Bob", "D10:1", "Later.")],
    session_10_date_time="12:09 am on 13 September, 2023",
    session_2=[turn("Ann", "D2:1", "Hi!"), turn("Bob", "D2:2", "Look.", blip_caption="a cat", img_url=["x"])],
    session_2_date_time="1:56 pm on 8 May, 2023",
    session_11_date_time="1:00 pm on 14 September, 2023",
)


def only(text: Any, **options: Any) -> LocomoConversation:
    [conversation] = read_conversations(json.dumps(text), tenant="acme", **options)
    return conversation


def said(conversation: LocomoConversation) -> list[MessageV1]:
    return [event for _, event, _ in conversation.events if isinstance(event, MessageV1)]


def test_turns_become_messages_in_the_order_of_sessions() -> None:
    messages = said(only(TWO_SESSIONS))
    assert [(message.role, message.name, message.content) for message in messages] == [
        ("user", "Ann", "Hi!"),
        ("assistant", "Bob", "Look."),
        ("assistant", "Bob", "Later."),
    ]


def test_time_is_the_sessions_and_goes_on_by_milliseconds() -> None:
    first = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert [message.sent_at for message in said(only(TWO_SESSIONS))] == [
        first,
        first + timedelta(milliseconds=1),
        datetime(2023, 9, 13, 0, 9, tzinfo=UTC),
    ]


def test_other_turn_fields_become_metadata() -> None:
    plain, picture, _ = said(only(TWO_SESSIONS))
    assert plain.metadata == {"dia_id": "D2:1", "session": 2}
    assert picture.metadata == {"dia_id": "D2:2", "session": 2, "blip_caption": "a cat", "img_url": ["x"]}


def test_a_sample_is_a_user_with_a_conversation_that_is_started() -> None:
    conversation = only(TWO_SESSIONS)
    assert {(user, place) for user, _, place in conversation.events} == {("conv-1", "conv-1")}
    assert isinstance(conversation.events[0].event, StartedV1)
    assert (conversation.name, conversation.sessions, conversation.turns) == ("conv-1", 2, 3)


def test_a_user_may_be_named() -> None:
    assert {(user, place) for user, _, place in only(TWO_SESSIONS, user="u1").events} == {("u1", "conv-1")}


def test_ids_are_the_same_each_time_and_belong_to_one_user_of_one_tenant() -> None:
    def ids(tenant: str, user: str | None) -> list[str | None]:
        [conversation] = read_conversations(json.dumps(TWO_SESSIONS), tenant=tenant, user=user)
        return [event.id for _, event, _ in conversation.events]

    assert ids("acme", None) == ids("acme", None)
    assert ids("acme", "u1")[1] == "locomo:acme:u1:conv-1:D2:1"
    everywhere = ids("acme", None) + ids("globex", None) + ids("acme", "u1")
    assert len(set(everywhere)) == len(everywhere)


def test_a_list_of_samples_is_read_too() -> None:
    other = {**TWO_SESSIONS, "sample_id": "conv-2"}
    assert [each.name for each in read_conversations(json.dumps([TWO_SESSIONS, other]), tenant="acme")] == [
        "conv-1",
        "conv-2",
    ]


def test_locomo_file_may_begin_with_a_byte_order_mark() -> None:
    [conversation] = read_conversations(json.dumps(TWO_SESSIONS).encode("utf-8-sig"), tenant="acme")
    assert conversation.turns == 3


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the file is not JSON: "),
        ("[1]", "sample 1: Input should be an object"),
        ("1", "sample 1: Input should be an object"),
        ('{"conversation": {}}', "sample 1: sample_id: Field required"),
        (json.dumps([TWO_SESSIONS, {"sample_id": "c"}]), "sample 2: conversation: Field required"),
        (json.dumps({"sample_id": "c", "conversation": {}}), "sample c: the field speaker_a is missing"),
        (
            json.dumps(sample(session_1=[turn("Ann", "D1:1", "Hi!")])),
            "sample conv-1: the field session_1_date_time is missing",
        ),
        (
            json.dumps(sample(session_1=[turn("Ann", "D1:1", "Hi!")], session_1_date_time="8 May")),
            "sample conv-1: session_1_date_time: '8 May' is not a time such as",
        ),
        (json.dumps(sample(session_1={})), "sample conv-1: session_1: Input should be a valid array"),
        (
            json.dumps(sample(session_1=["Hi!"])),
            "sample conv-1: session_1: turn 1: Input should be an object",
        ),
        (
            json.dumps(sample(session_1=[{"speaker": "Ann", "text": "Hi!"}])),
            "sample conv-1: session_1: turn 1: dia_id",
        ),
        (
            json.dumps(
                sample(session_1=[turn("Ann", "D1:1", "\0")], session_1_date_time="1:56 pm on 8 May, 2023")
            ),
            "sample conv-1: session_1: the turn D1:1 cannot be a message: content: contains",
        ),
    ],
)
def test_problem_of_a_file_is_reported(text: str, problem: str) -> None:
    with pytest.raises(NotLocomo) as refused:
        read_conversations(text, tenant="acme")
    assert str(refused.value).startswith(problem)


@pytest.mark.skipif(
    not DATA.is_dir(), reason="the LoCoMo files are not at hand: set LOCOMO_DATA to their folder"
)
def test_the_real_files_are_read_to_the_last_turn() -> None:
    for file in sorted(DATA.glob("*.json")):
        source = json.loads(file.read_text())["conversation"]
        turns = {
            turn["dia_id"]: (turn["speaker"], turn["text"])
            for key, session in source.items()
            if isinstance(session, list)
            for turn in session
        }
        [conversation] = read_conversations(file.read_bytes(), tenant="acme")
        messages = said(conversation)
        assert {str((m.metadata or {})["dia_id"]): (m.name, m.content) for m in messages} == turns
        times = [message.sent_at for message in messages if message.sent_at]
        assert len(times) == len(turns)
        assert times == sorted(times)
