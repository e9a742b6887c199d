"""Delay before a message is delivered again."""

from mnemon_infra.broker.outcomes import DELAYS, compute_retry_delay


def test_retry_delay_grows_up_to_the_last_value() -> None:
    delays = [compute_retry_delay(deliveries) for deliveries in range(1, 20)]
    assert delays == sorted(delays)
    assert delays[0] == DELAYS[0]
    assert delays[-1] == DELAYS[-1]


def test_impossible_delivery_count_is_no_error() -> None:
    assert compute_retry_delay(0) == DELAYS[0]
