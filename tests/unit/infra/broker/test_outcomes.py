"""How long a message waits before it is delivered again."""

from mnemon_infra.broker.outcomes import DELAYS, compute_retry_delay


def test_the_delay_grows_and_stays_at_the_last() -> None:
    delays = [compute_retry_delay(deliveries) for deliveries in range(1, 20)]
    assert delays == sorted(delays)
    assert delays[0] == DELAYS[0]
    assert delays[-1] == DELAYS[-1]


def test_a_count_that_no_server_gives_is_not_an_error() -> None:
    assert compute_retry_delay(0) == DELAYS[0]
