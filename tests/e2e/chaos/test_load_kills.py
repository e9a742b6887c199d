"""Kills while many users publish: no event is lost, stored twice or stored out of order.

With 50,000 messages of 1,000 users and five kills: `python -m tests.support.chaos.load`.
"""

import pytest

from tests.support.chaos.load import ConversationLoad, runners_are_killed, up_is_killed
from tests.support.processes.stack import Up

pytestmark = pytest.mark.long


async def test_messages_survive_kills_of_up_and_its_servers(up: Up) -> None:
    await up_is_killed(up, ConversationLoad(users=100, turns=40), kills=2)


async def test_messages_survive_kills_of_runners_and_postgresql_restart(up: Up) -> None:
    await runners_are_killed(up, ConversationLoad(users=100, turns=40), kills=2)
