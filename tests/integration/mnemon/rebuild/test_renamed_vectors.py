"""The way back was cut off, and somebody else has had the name to which the former vectors had gone."""

from pathlib import Path

from mnemon.operations.rebuild.generations import made
from mnemon.operations.rebuild.live_vectors import counted
from mnemon.operations.rebuild.swap import finish, former, take_over
from mnemon_consumers.app import run_consumers
from mnemon_infra.config import Deployment
from mnemon_infra.rebuild.generations import site_alone
from tests.integration.consumers.retrieve.test_as_of import ToldOfBoth
from tests.support.stock_client import Stock, indexed


async def test_foreign_vectors_are_not_taken_for_former_ones(
    deployment: Deployment, stock: Stock, tmp_path: Path
) -> None:
    told = ToldOfBoth()
    located = deployment.model_copy(update={"vectors_folder": tmp_path / "vectors"})
    async with run_consumers(("persist", "index"), located):
        await indexed(stock, await stock.say("the walrus sings"))
    async with site_alone(located) as place:
        async with made(place, "next", told) as generation:
            await take_over(place, generation, told)
        assert await finish(place, told)
        async with former(place, told):
            pass  # killed
        async with made(place, "next", told):
            pass  # killed, too, before any of its vectors are there
        async with former(place, told) as generation:
            await take_over(place, generation, told)
        assert await finish(place, told)
        assert await counted(place, located) == 1
