"""The sample conversations match their description in the package `mnemon.demo`."""

import json
import re
from collections import Counter
from importlib.resources import files
from itertools import pairwise
from typing import Any

import pytest

import mnemon.demo
from mnemon.demo.facts import PROPOSED_TEXTS
from mnemon.demo.run import MAX_RUN, split_into_runs
from mnemon.demo.sample import ANNA, IVAN, USERS, SampleLine, read_sample
from mnemon_contracts.base import Contract, InvalidBody
from mnemon_contracts.events.chat import ClearedV1, MessageV1, StartedV1
from mnemon_contracts.events.memory import ProfileSetV1

CYRILLIC = re.compile("[а-яё]", re.IGNORECASE)
LATIN = re.compile("[a-z]{4}", re.IGNORECASE)


@pytest.fixture(scope="module")
def sample() -> tuple[SampleLine, ...]:
    return read_sample()


@pytest.fixture(scope="module")
def messages(sample: tuple[SampleLine, ...]) -> list[tuple[SampleLine, MessageV1]]:
    return [(line, line.event) for line in sample if isinstance(line.event, MessageV1)]


def documented(pattern: str) -> int:
    """Return the number before `pattern` in the description."""
    found = re.search(rf"(\d+) {pattern}", str(mnemon.demo.__doc__))
    assert found, pattern
    return int(found[1])


def test_sample_has_the_documented_number_of_events(sample: tuple[SampleLine, ...]) -> None:
    counts = Counter(type(line.event) for line in sample)
    assert counts == {
        MessageV1: documented("messages, one of them twice"),
        StartedV1: documented("`started` that discards"),
        ClearedV1: documented("`cleared`"),
        ProfileSetV1: documented("changes of a user's data"),
        bytes: documented("broken messages"),
    }


def test_no_field_is_misspelled() -> None:
    text = (files("mnemon.demo") / "conversation.jsonl").read_text(encoding="utf-8")
    contracts: dict[str, type[Contract]] = {
        "message": MessageV1,
        "started": StartedV1,
        "cleared": ClearedV1,
        "profile.set": ProfileSetV1,
    }
    for line in text.splitlines():
        fields: dict[str, Any] = json.loads(line)
        assert fields.keys() <= {"event", "user", "conversation", "body", "raw"}
        if "body" in fields:
            contracts[fields["event"]].model_validate_json(json.dumps(fields["body"]), extra="forbid")


def test_one_message_is_there_twice_to_the_letter(messages: list[tuple[SampleLine, MessageV1]]) -> None:
    times = Counter(message.id for _, message in messages)
    twice = [identity for identity, count in times.items() if count > 1]
    assert len(twice) == 1
    first, second = [line for line, message in messages if message.id == twice[0]]
    assert first == second


def test_broken_sample_events_are_refused_with_the_cause(sample: tuple[SampleLine, ...]) -> None:
    problems = []
    for line in sample:
        if isinstance(line.event, bytes):
            with pytest.raises(InvalidBody) as refused:
                MessageV1.parse(line.event)
            problems.append(refused.value)
    truncated, unknown_role = problems
    assert truncated.field == "body"
    assert "EOF" in truncated.problem
    assert unknown_role.field == "role"
    assert "'assistant'" in unknown_role.problem


def test_sample_is_ordered_by_time(messages: list[tuple[SampleLine, MessageV1]]) -> None:
    moments = [message.sent_at for _, message in messages]
    assert all(earlier and later and earlier <= later for earlier, later in pairwise(moments))
    assert len({moment.date() for moment in moments if moment}) > 10


def test_sample_users_speak_their_language(messages: list[tuple[SampleLine, MessageV1]]) -> None:
    said: dict[tuple[str, str | None], str] = {}
    for line, message in messages:
        if message.role != "tool":
            place = line.user, line.conversation
            said[place] = said.get(place, "") + message.content
    assert {user for user, _ in said} == set(USERS)
    for place, text in said.items():
        is_english = place in {("anna", None), ("lena", "work")}
        cyrillic, latin = len(CYRILLIC.findall(text)), len(LATIN.findall(text))
        assert (cyrillic == 0) if is_english else (cyrillic > 50 * latin), place


def test_facts_are_told_in_both_languages() -> None:
    assert not CYRILLIC.search(" ".join(PROPOSED_TEXTS[ANNA]))
    assert not LATIN.search(" ".join(PROPOSED_TEXTS[IVAN]))


def test_tools_are_called_with_arguments_and_answer_within_a_task(
    messages: list[tuple[SampleLine, MessageV1]],
) -> None:
    calls = [call for _, message in messages for call in message.tool_calls or ()]
    results = [message for _, message in messages if message.role == "tool"]
    assert len(calls) == len(results)
    assert all(isinstance(call.arguments, dict) for call in calls)
    assert Counter(call.name for call in calls) == Counter(result.name for result in results)
    assert all(result.task_id and json.loads(result.content) for result in results)
    assert any(message.tool_calls and not message.content for _, message in messages)


def test_discarded_messages_do_not_come_up_again(messages: list[tuple[SampleLine, MessageV1]]) -> None:
    """A later mention would hide that the demo removes the discarded messages."""
    said = [message.content for line, message in messages if line.user == "anna"]
    assert sum("Morwenna" in content for content in said) == 3
    assert not any("Morwenna" in content for content in said[18:])


def test_runs_keep_order_and_separate_other_events(sample: tuple[SampleLine, ...]) -> None:
    runs = list(split_into_runs(sample))
    assert [line for run in runs for line in run] == list(sample)
    sent: set[str | None] = set()
    for run in runs:
        assert 1 <= len(run) <= MAX_RUN
        events = [line.event for line in run]
        if len(run) > 1:
            ids = [event.id for event in events if isinstance(event, MessageV1)]
            assert len(set(ids)) == len(run)
            assert sent.isdisjoint(ids)
        sent.update(event.id for event in events if isinstance(event, MessageV1))
