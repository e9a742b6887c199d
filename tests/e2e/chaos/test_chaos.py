"""Kills of processes leave the same state as an undisturbed run.

With 200 kills: `just chaos`.
"""

from pathlib import Path

import pytest

from tests.support.chaos.run import chaos
from tests.support.servers.qdrant_process import QdrantProcess, requires_binary

pytestmark = pytest.mark.long


KINDS_ON_A_SERVER = 10
"""Kinds of processes that can be killed, with a Qdrant server."""


@requires_binary
@pytest.mark.timeout(900)
async def test_chaos_with_two_processes_of_each_consumer_on_a_qdrant_server(data: Path) -> None:
    data.mkdir()
    qdrant = QdrantProcess(data / "qdrant")
    await qdrant.start()
    try:
        assert not await chaos(data, seed=7, users=18, steps=12, kills=KINDS_ON_A_SERVER, qdrant=qdrant)
    finally:
        await qdrant.kill()


@pytest.mark.timeout(900)
async def test_chaos_with_one_kill_each_ends_in_the_undisturbed_state(data: Path) -> None:
    data.mkdir()
    assert not await chaos(data, seed=7, users=18, steps=12, kills=6)
