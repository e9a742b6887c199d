"""Cache of the newest messages of users: it has a bound in bytes, however long messages are."""

from datetime import UTC, datetime

import pytest

from mnemon_consumers.retrieve.memory import cache
from mnemon_consumers.retrieve.memory.cache import PositionedValue, UserCache
from mnemon_infra.database.memory.user_memory import ConversationView, StoredRow

ANNA, BORIS = ("acme", "anna"), ("acme", "boris")
THEN = datetime(2026, 1, 1, tzinfo=UTC)


def view(characters: int, tools: int = 0) -> PositionedValue[ConversationView]:
    calls = [{"name": "search", "result": "w" * tools}] if tools else None
    row = StoredRow(1, "e1", "user", "w" * characters, None, None, calls, THEN)
    return PositionedValue(ConversationView("c1", [row], complete=True), 1)


def keep(users: UserCache, owner: tuple[str, str], *conversations: PositionedValue[ConversationView]) -> None:
    for number, each in enumerate(conversations):
        users.keep_messages(owner, users.get_message_entry(owner), f"c{number}", each)


@pytest.fixture(autouse=True)
def small_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "NEWEST_MESSAGES", 10_000)


def test_the_messages_of_all_users_have_a_bound() -> None:
    users = UserCache(100)
    for number in range(100):
        keep(users, ("acme", f"u{number}"), view(2_000))
    newest_first = reversed(range(100))
    kept = [number for number in newest_first if users.get_message_entry(("acme", f"u{number}"))]
    assert kept == [99, 98, 97]


def test_the_messages_of_all_conversations_of_a_user_count() -> None:
    users = UserCache(100)
    keep(users, BORIS, view(2_000))
    keep(users, ANNA, *[view(2_000)] * 3)
    assert len(users.get_message_entry(ANNA)) == 3
    assert not users.get_message_entry(BORIS)


@pytest.mark.parametrize("large", [view(20_000), view(10, tools=20_000)])
def test_messages_beyond_the_bound_are_not_kept(large: PositionedValue[ConversationView]) -> None:
    users = UserCache(100)
    keep(users, ANNA, large)
    assert not users.get_message_entry(ANNA)


def test_messages_read_before_a_change_are_discarded() -> None:
    users = UserCache(100)
    entry = users.get_message_entry(ANNA)
    users.drop_user(ANNA)
    users.keep_messages(ANNA, entry, "c1", view(10))
    assert not users.get_message_entry(ANNA)


def test_evicted_user_loses_its_messages() -> None:
    users = UserCache(1)
    keep(users, ANNA, view(10))
    keep(users, BORIS, view(10))
    assert not users.get_message_entry(ANNA)
