"""The example bot for Telegram, with a Bot API server, a model server and `mnemon up`."""

import asyncio
import importlib.util
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import ModuleType

import pytest

from mnemon import MemoryClient
from mnemon_bench.provider_server.server import ProviderServer
from tests.support.patience import PATIENT
from tests.support.processes.stack import TIMEOUT, Up
from tests.support.servers.telegram_server import Telegram

BOT = Path(__file__).parents[3] / "docs" / "examples" / "telegram_bot.py"
USER = 4711


def _loaded(path: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification
    assert specification.loader
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@asynccontextmanager
async def _talking(main: Callable[[], Awaitable[None]]) -> AsyncIterator[None]:
    """Run the bot, and cancel its tasks at the end of the block."""
    others = asyncio.all_tasks()
    bot = asyncio.ensure_future(main())
    try:
        yield
    finally:
        of_the_bot = {bot, *asyncio.all_tasks()} - others
        for task in of_the_bot:
            task.cancel()
        await asyncio.gather(*of_the_bot, return_exceptions=True)
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().remove_signal_handler(number)


@asynccontextmanager
async def _stopped(up: Up) -> AsyncIterator[None]:
    await up.stop()
    try:
        yield
    finally:
        await up.start(MNEMON_NATS_URL="")  # the variable is set for the bot, not for `mnemon up`


# The test runs in the event loop of the shared stack, which it stops and starts again.
@pytest.mark.long
@pytest.mark.asyncio(loop_scope="session")
@pytest.mark.timeout(300)  # it waits for timeouts while the stack is stopped
async def test_telegram_bot_remembers_over_restarts(shared: Up, monkeypatch: pytest.MonkeyPatch) -> None:
    assert shared.endpoints
    # The bot runs in this process: another import of aiogram would take longer than the rest of the test.
    main = _loaded(BOT).main
    nats = shared.endpoints.nats
    with Telegram(USER) as anna, ProviderServer() as model:
        monkeypatch.setenv("TELEGRAM_API_URL", anna.url)
        monkeypatch.setenv("BOT_TOKEN", "123:a-token")
        monkeypatch.setenv("MNEMON_MODEL_URL", model.openai_url)
        monkeypatch.setenv("MNEMON_NATS_URL", nats)
        async with _talking(main):
            assert "I remember" in await anna.says("/start")
            assert "cello" in await anna.says("Every evening my cello annoys Porto")

        async with _talking(main), MemoryClient.connect(nats, tenant="telegram", timeouts=PATIENT) as memory:
            await _answers(anna, "What annoys them?", "cello")  # the bot has been restarted

            async with _stopped(shared):
                alone = await anna.says("And Lisbon?")
                assert "Lisbon" in alone
                assert "cello" not in alone
                assert "right now" in await anna.says("/memory")
            async with asyncio.timeout(TIMEOUT):
                while "And Lisbon?" not in await _said(memory):
                    await asyncio.sleep(0.1)
            await _answers(anna, "Both?", "cello", "Lisbon")  # "Lisbon" was said while the stack was stopped

            saved = await memory.save(str(USER), "Plays the cello in a quartet")
            # Another client has saved the fact, so the bot's next answer may lack it.
            await _answers(anna, "/memory", "Plays the cello in a quartet")
            which = await anna.says("/forget the cello in Porto")
            assert which == f"Which one do you mean?\n/forget {saved.id}  Plays the cello in a quartet"
            gone = await anna.says(f"/forget {saved.id}")
            assert gone == f"Forgotten: {saved.id} Plays the cello in a quartet"
            assert await anna.says("/forget the cello") == "I know nothing of the kind."
            assert "new conversation" in await anna.says("/new")
            assert "cello" not in await anna.says("What annoys them?"), "what was said before is gone"
            assert "nothing of you" in await anna.says("/forget everything")
            async with asyncio.timeout(TIMEOUT):
                while await _said(memory):
                    await asyncio.sleep(0.1)


async def _answers(anna: Telegram, question: str, *words: str) -> None:
    """Ask until an answer contains all words: memory may be too late for the first ones."""
    answer = ""
    async with asyncio.timeout(TIMEOUT):
        while not all(word in answer for word in words):
            answer = await anna.says(question)


async def _said(memory: MemoryClient) -> list[str]:
    return [message.content for message in (await memory.history(str(USER))).messages]
