"""`mnemon status` warns of old dead letters, and of many."""

from datetime import UTC, datetime, timedelta

import pytest

from mnemon.operations.health.dead_letters import MANY_LETTERS, OLD_LETTER, warn_of_dead_letters

NOW = datetime(2026, 11, 21, tzinfo=UTC)


@pytest.mark.parametrize(
    ("letters", "oldest"),
    [(0, None), (1, NOW - OLD_LETTER), (MANY_LETTERS - 1, NOW - timedelta(days=1))],
)
def test_few_recent_letters_give_no_warning(letters: int, oldest: datetime | None) -> None:
    assert list(warn_of_dead_letters(letters, oldest, NOW)) == []


@pytest.mark.parametrize(
    ("letters", "oldest"), [(1, NOW - OLD_LETTER - timedelta(seconds=1)), (MANY_LETTERS, NOW)]
)
def test_old_or_many_letters_give_a_warning_with_count_and_date(letters: int, oldest: datetime) -> None:
    (warning,) = warn_of_dead_letters(letters, oldest, NOW)

    assert warning.startswith(f"dead letters kept: {letters:,}, the oldest since {oldest:%Y-%m-%d}")
    assert "retention.dead_letter_days" in warning
