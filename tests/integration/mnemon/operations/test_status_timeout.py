"""Status of a NATS server that does not answer in time."""

import pytest

from mnemon.operations.health import report
from mnemon.operations.health.state import BrokerState
from mnemon_infra.config import Deployment


async def test_server_without_an_answer_is_named_with_the_reason(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wait_in_vain(*_: object) -> BrokerState:
        raise TimeoutError

    monkeypatch.setattr(report, "_load_broker_state", wait_in_vain)
    problems = (await report.examine_deployment(deployment)).problems
    assert "the state of the NATS server cannot be read: timeout. Check that it runs" in problems
