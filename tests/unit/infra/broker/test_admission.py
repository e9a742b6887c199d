"""Limits on requests: per second for a tenant, and in work for a user."""

from mnemon_contracts.subjects import Address, parse_subject
from mnemon_infra.broker.admission import Admission, RequestLimits


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def asks(user: str, tenant: str = "acme") -> Address:
    return parse_subject(f"ask.{tenant}.{user}.context.v1")


def let_in(admission: Admission, address: Address, times: int) -> int:
    """Return how many of `times` requests the limits admit."""
    return sum(admission.check_limits(address) is None for _ in range(times))


def exceeded_limit(admission: Admission, address: Address) -> str | None:
    error = admission.check_limits(address)
    return error.limit if error else None


def test_concurrent_requests_are_limited_per_user() -> None:
    admission = Admission(lambda tenant: RequestLimits(None, 2))
    for _ in range(2):
        assert admission.check_limits(asks("anna")) is None
        admission.begin_request(asks("anna"))
    assert exceeded_limit(admission, asks("anna")) == "rates.requests_per_user"
    assert admission.check_limits(asks("boris")) is None
    assert admission.check_limits(asks("anna", "globex")) is None
    admission.end_request(asks("anna"))
    assert admission.check_limits(asks("anna")) is None


def test_tenant_rate_applies_after_a_burst_of_one_second() -> None:
    clock = Clock()
    admission = Admission(lambda tenant: RequestLimits(10 if tenant == "acme" else None, 1000), clock)
    assert let_in(admission, asks("anna"), 100) == 10
    assert exceeded_limit(admission, asks("boris")) == "rates.requests_per_second"
    assert let_in(admission, asks("anna", "globex"), 100) == 100
    clock.now += 0.5
    assert let_in(admission, asks("boris"), 100) == 5
    clock.now += 60
    assert let_in(admission, asks("boris"), 100) == 10


def test_refused_request_costs_no_rate() -> None:
    clock = Clock()
    admission = Admission(lambda tenant: RequestLimits(1, 1000), clock)
    for _ in range(5):
        assert let_in(admission, asks("anna"), 50) == 1
        clock.now += 1


def test_less_than_one_request_a_second_is_a_rate_too() -> None:
    clock = Clock()
    admission = Admission(lambda tenant: RequestLimits(0.25, 1000), clock)
    assert let_in(admission, asks("anna"), 5) == 1
    clock.now += 0.5
    refused = admission.check_limits(asks("anna"))
    assert refused is not None
    assert "more than 0.25 requests a second of this tenant: ask again in 4 s" in refused.message
    clock.now += 3.4
    assert let_in(admission, asks("anna"), 5) == 0
    clock.now += 0.2
    assert let_in(admission, asks("anna"), 5) == 1
