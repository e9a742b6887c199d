"""An interrupted swap back, after which another generation takes the name of the former vectors."""

from pathlib import Path

import pytest

from mnemon.operations.rebuild.generations import open_generation
from mnemon.operations.rebuild.live_vectors import count_points
from mnemon.operations.rebuild.swap import open_former_generation, swap_rows, swap_vectors
from mnemon_consumers.app import run_consumers
from mnemon_infra.config import Deployment
from mnemon_infra.rebuild.generations import open_exclusive_site
from tests.integration.consumers.retrieve.test_as_of import ToldOfBoth
from tests.support.stock_client import Stock, indexed


@pytest.mark.long
async def test_foreign_vectors_are_not_taken_for_former_ones(
    deployment: Deployment, stock: Stock, tmp_path: Path
) -> None:
    told = ToldOfBoth()
    located = deployment.model_copy(update={"vectors_folder": tmp_path / "vectors"})
    async with run_consumers(("persist", "index"), located):
        await indexed(stock, await stock.say("the walrus sings"))
    async with open_exclusive_site(located) as place:
        async with open_generation(place, "next", told) as generation:
            await swap_rows(place, generation, told)
        assert await swap_vectors(place, told)
        async with open_former_generation(place, told):
            pass  # as killed before the swap
        async with open_generation(place, "next", told):
            pass  # as killed before the replay
        async with open_former_generation(place, told) as generation:
            await swap_rows(place, generation, told)
        assert await swap_vectors(place, told)
        assert await count_points(place, located) == 1
