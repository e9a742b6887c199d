"""How many questions are let in."""

from mnemon_contracts.subjects import Address, parse
from mnemon_infra.broker.admission import Admission, Bounds


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def asks(user: str, tenant: str = "acme") -> Address:
    return parse(f"ask.{tenant}.{user}.context.v1")


def let_in(admission: Admission, address: Address, times: int) -> int:
    """How many of so many requests."""
    return sum(admission.refusal(address) is None for _ in range(times))


def test_a_user_has_so_many_answered_at_the_same_time_and_others_are_not_concerned() -> None:
    admission = Admission(lambda tenant: Bounds(None, 2))
    for _ in range(2):
        assert admission.refusal(asks("anna")) is None
        admission.begin(asks("anna"))
    assert "rates.requests_per_user" in str(admission.refusal(asks("anna")))
    assert admission.refusal(asks("boris")) is None
    assert admission.refusal(asks("anna", "globex")) is None
    admission.end(asks("anna"))
    assert admission.refusal(asks("anna")) is None


def test_a_tenant_asks_at_its_rate_after_a_burst_of_a_second() -> None:
    clock = Clock()
    admission = Admission(lambda tenant: Bounds(10 if tenant == "acme" else None, 1000), clock)
    assert let_in(admission, asks("anna"), 100) == 10
    assert "rates.requests_per_second" in str(admission.refusal(asks("boris")))
    assert let_in(admission, asks("anna", "globex"), 100) == 100
    clock.now += 0.5
    assert let_in(admission, asks("boris"), 100) == 5
    clock.now += 60
    assert let_in(admission, asks("boris"), 100) == 10


def test_refused_request_costs_no_rate() -> None:
    clock = Clock()
    admission = Admission(lambda tenant: Bounds(1, 1000), clock)
    for _ in range(5):
        assert let_in(admission, asks("anna"), 50) == 1
        clock.now += 1


def test_less_than_one_request_a_second_is_a_rate_too() -> None:
    clock = Clock()
    admission = Admission(lambda tenant: Bounds(0.25, 1000), clock)
    assert let_in(admission, asks("anna"), 5) == 1
    clock.now += 3.9
    assert let_in(admission, asks("anna"), 5) == 0
    clock.now += 0.2
    assert let_in(admission, asks("anna"), 5) == 1
