"""After any kills, the state is that of an undisturbed run.

With 200 kills: `just chaos`.
"""

from pathlib import Path

import pytest

from tests.support.chaos.run import chaos

pytestmark = pytest.mark.long


async def test_chaos_with_one_kill_each_ends_in_the_undisturbed_state(data: Path) -> None:
    data.mkdir()
    assert not await chaos(data, seed=7, users=18, steps=12, kills=6)
