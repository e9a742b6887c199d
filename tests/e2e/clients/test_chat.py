"""`mnemon chat` through a pipe: with a model server, and on a folder without a running stack."""

from pathlib import Path

import pytest

from mnemon_bench.provider_server.server import ProviderServer
from tests.support.processes.chat_session import ChatSession, talk
from tests.support.processes.stack import Up


@pytest.mark.long
async def test_chat_command_talks_through_a_pipe(shared: Up) -> None:
    with ProviderServer() as model:
        servers = {"MNEMON_MODEL_URL": model.openai_url, "MNEMON_MODEL": "a-model"}
        async with talk("chat", "--data", shared.data, "--user", "anna", **servers) as anna:
            await _told(anna)
            anna.tell("/exit")
            assert await anna.ended() == 1, "not all that was asked for could be done"
            assert "Starting" not in anna.said, "a stack runs"


@pytest.mark.long
async def test_chat_that_started_a_stack_ends_it_on_sigterm_while_its_input_stays_open(data: Path) -> None:
    async with talk("chat", "--data", data, "--user", "anna", "--model", "offline") as anna:
        await anna.heard(f"Starting a stack in {data}")
        anna.tell("Hello")
        await anna.heard("No model is set")
        async with talk("chat", "--data", data, "--user", "boris", "--model", "offline") as boris:
            boris.tell("Hello")
            await boris.heard("No model is set")
            boris.tell("/facts")
            await boris.heard("No facts yet")
            assert await boris.ended() == 0
            assert "Starting" not in boris.said, "hers runs"
        assert await anna.terminated() == 0
    assert not Up(data).pids()


async def _told(anna: ChatSession) -> None:
    """Perform the main actions of memory: save, read, ask, forget."""
    anna.tell("My cello annoys Porto")
    await anna.heard("cello, annoys, Porto.")
    anna.tell("/save I am allergic to penicillin")
    saved = (await anna.heard("saved: ")).split()[-1]
    anna.tell("/facts")
    assert saved in await anna.heard("allergic to penicillin")
    anna.tell("Whom does it annoy?")
    assert "cello" in await anna.heard("They spoke"), "it remembers"
    anna.tell("/why")
    assert "shown" in await anna.heard("My cello annoys Porto")
    anna.tell("/context")
    await anna.heard("] I am allergic to penicillin")
    await anna.heard("1 shown")
    await anna.heard("tokens")
    anna.tell(f"/forget {saved}")
    await anna.heard(f"Forgotten: {saved} I am allergic to penicillin")
    anna.tell("/facts")
    await anna.heard("No facts yet")
    anna.tell("/restore")
    await anna.heard("saved: ")
    anna.tell("/forget penicillin in Porto")
    await anna.heard("do not clearly mean one fact")
    await anna.heard("I am allergic to penicillin")
    anna.tell("/forget 7")
    await anna.heard("The list has no fact 7: choose 1.")
    anna.tell("/forget 1")
    await anna.heard("Forgotten: ")
    anna.tell("/facts")
    await anna.heard("No facts yet")
    anna.tell("/forget penicillin")
    await anna.heard("No fact fits these words. List the facts: /facts")
    anna.tell("/forget pf_099")
    await anna.heard("There is no fact pf_099. List the facts: /facts")
    anna.tell("/save I live in Ghent")
    await anna.heard("saved: ")
    anna.tell("/forget where I live")
    await anna.heard("I live in Ghent")
    anna.tell("/nonsense")
    await anna.heard("List the commands: /help")
    anna.tell("/new")
    await anna.heard("Started a new conversation")
    anna.tell("/context")
    await anna.heard("No saved information.")
