"""Messages about clock skew: the clock that differs, the seconds and the direction."""

import pytest

from mnemon_infra.health.clock_skew import MAX_SKEW, Clocks


@pytest.mark.parametrize(
    ("clocks", "problem"),
    [
        (Clocks(0.0, 0.0, 0.0), None),
        (Clocks(MAX_SKEW, -MAX_SKEW, MAX_SKEW), None),
        (Clocks(-7200.0, -3.0, 0.0), "the broker's clock is 7,200 s behind this machine's"),
        (Clocks(3.0, 61.0, 0.0), "the database's clock is 61 s ahead of this machine's"),
        (
            Clocks(-7200.0, -7199.0, 0.0),
            "this machine's clock is 7,200 s ahead of those of the broker and the database",
        ),
        (Clocks(0.0, 0.0, 61.0), "the newest event of LOG is stamped 61 s ahead of the broker's clock"),
    ],
)
def test_clock_skew_is_named_with_direction(clocks: Clocks, problem: str | None) -> None:
    said = clocks.problem
    assert (said and said.partition(":")[0]) == problem
