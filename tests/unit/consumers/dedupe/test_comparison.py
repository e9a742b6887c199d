"""Known facts that a new fact is compared with."""

import pytest

from tests.support.facts.decided_user import DecidedUser, by

APART = by(0.95)


@pytest.mark.parametrize(
    ("drink", "switched", "near"),
    [
        ("Drinks coffee", "Switched to tea", "Collects teapots"),
        ("Пьёт кофе", "Перешла на чай", "Собирает чайники"),
    ],
)
def test_switch_is_compared_with_things_of_the_kind(drink: str, switched: str, near: str) -> None:
    user = DecidedUser()
    user.say(drink, 90, APART)
    user.say(near, 30, APART)

    user.say(switched, 0, APART)

    assert sorted(user.said.values()) == sorted([switched, near])
