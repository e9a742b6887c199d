"""`bench dedupe` at a small size."""

from bench import dedupe
from bench.dedupe import USERS
from infra.config import Deployment

FACTS = 2
"""New facts of each user; as many proposals repeat them."""


async def test_four_workers_decide_as_one_does(deployment: Deployment) -> None:
    measured = await dedupe.run(deployment, rounds=1, number=2 * FACTS * USERS)

    assert set(measured["decisions_per_second"]) == {"bare", "one", "four"}
    assert all(rate > 0 for rate in measured["decisions_per_second"].values())
    outcome = measured["outcome"]
    assert outcome["fact.proposed"] == 2 * FACTS * USERS
    assert outcome["fact.saved"] >= FACTS * USERS
    assert sum(outcome.values()) == 2 * outcome["fact.proposed"]
