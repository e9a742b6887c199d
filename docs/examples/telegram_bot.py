"""A Telegram bot with memory.

    pip install . aiogram openai                           # in a clone of mnemon
    export BOT_TOKEN=...                                   # from @BotFather
    export MNEMON_MODEL_URL=http://127.0.0.1:11434/v1 MNEMON_MODEL=qwen3:8b
    python docs/examples/telegram_bot.py

The bot publishes each message, requests the context of each answer, and has a model write the answer. While
mnemon is down, the bot answers without memory. It publishes the messages of that time once mnemon is back, if
that is within an hour.
"""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from typing import Any

from aiogram import Bot, Dispatcher, F, Router
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import PRODUCTION, TelegramAPIServer
from aiogram.filters import Command, CommandObject, CommandStart
from aiogram.types import ErrorEvent, Message
from aiogram.utils.chat_action import ChatActionSender
from openai import AsyncOpenAI, OpenAIError

from mnemon import AskFailed, MemoryClient, Timeouts

MANNERS = "You are a friendly assistant in a chat. Answer briefly. What you know of the user stands below."
HELP = "/new begins a new conversation, /memory shows what I know of you, /forget removes some of it."
ANSWER_TIMEOUT = 2.0  # maximum seconds that an answer waits until its question is in the log
LONGEST = 4096  # maximum characters of a message in Telegram

log = logging.getLogger("bot")


class Keeper:
    """Publishes events in their order; a slow publish continues while the bot answers."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[int]] = set()
        self._order = asyncio.Lock()

    async def keep(self, publish: Callable[..., Awaitable[int]], *what: Any, **more: Any) -> int | None:
        """Publish an event, and return its log position.

        Return None if the publish fails, or takes longer than `ANSWER_TIMEOUT`.
        """

        async def in_order() -> int:
            async with self._order:
                return await publish(*what, **more)

        task = asyncio.create_task(in_order())
        self._tasks.add(task)
        task.add_done_callback(self._done)
        done, _ = await asyncio.wait([task], timeout=ANSWER_TIMEOUT)
        return task.result() if done and not task.exception() else None

    def _done(self, task: asyncio.Task[int]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception():
            log.error("event not published error=%s", task.exception())


def build_router() -> Router:
    """Return the handlers of messages; the bot answers in private chats only."""
    router = Router()
    router.message.filter(F.chat.type == "private")
    router.message.register(start, CommandStart())
    router.message.register(new, Command("new"))
    router.message.register(show, Command("memory"))
    router.message.register(forget, Command("forget"))
    router.message.register(answer, F.text)
    router.error.register(excuse, F.update.message.as_("message"))
    return router


async def start(message: Message) -> None:
    await message.answer(f"Hello! I remember what you tell me. {HELP}")


async def new(message: Message, memory: MemoryClient, keeper: Keeper) -> None:
    await keeper.keep(memory.start, user(message), discard_previous=True, id=event_id(message))
    await message.answer("A new conversation. What was said before is gone, the facts I know of you stay.")


async def show(message: Message, memory: MemoryClient) -> None:
    facts = (await memory.read_all(user(message))).facts
    await say(message, "\n".join(f"{fact.id}  {fact.text}" for fact in facts) or "I know nothing of you yet.")


async def forget(message: Message, command: CommandObject, memory: MemoryClient) -> None:
    match command.args:
        case None:
            await message.answer("Say what: /forget pf_001, or /forget where I live, or /forget everything")
        case "everything":
            await memory.erase(user(message))
            await message.answer("I know nothing of you any more.")
        case what:
            ids = {fact.id for fact in (await memory.read(user(message))).facts}
            how = {"id": what} if what in ids else {"query": what}
            gone = await memory.forget(user(message), **how)
            if gone.id:
                await say(message, f"Forgotten: {gone.id} {gone.text}")
            else:
                which = "\n".join(f"/forget {each.id}  {each.text}" for each in gone.candidates)
                await say(message, f"Which one do you mean?\n{which}")


async def answer(
    message: Message, bot: Bot, memory: MemoryClient, keeper: Keeper, model: AsyncOpenAI
) -> None:
    text = str(message.text)
    said = await keeper.keep(
        memory.publish, user(message), "user", text, sent_at=message.date, id=event_id(message)
    )
    context = await memory.context(user(message), query=text, min_seq=said)  # never raises
    known: list[Any] = [{"role": each.role, "content": each.content} for each in context.messages]
    if said is None or context.error:  # mnemon is down: the model gets only this message
        known.append({"role": "user", "content": text})
    async with ChatActionSender.typing(chat_id=message.chat.id, bot=bot):
        completion = await model.chat.completions.create(
            model=os.environ.get("MNEMON_MODEL", "gpt-4.1-mini"),
            messages=[{"role": "system", "content": MANNERS}, *known],
        )
    answered = completion.choices[0].message.content or "I have nothing to say."
    await say(message, answered)
    await keeper.keep(memory.publish, user(message), "assistant", answered)


async def excuse(event: ErrorEvent, message: Message) -> None:
    log.warning("message not answered error=%s", event.exception)
    match event.exception:
        case AskFailed(code="not_found"):
            await message.answer("I know nothing of the kind.")
        case AskFailed():
            await message.answer("I cannot look into my memory right now. Try again in a moment.")
        case OpenAIError():
            await message.answer("I cannot think right now. Try again in a moment.")
        case _:
            raise event.exception


async def say(message: Message, text: str) -> None:
    for begin in range(0, len(text), LONGEST):
        await message.answer(text[begin : begin + LONGEST])


def user(message: Message) -> str:
    return str(message.chat.id)


def event_id(message: Message) -> str:
    """Return an event id by which a message is stored once, even if Telegram delivers it again."""
    return f"telegram:{message.message_id}"


async def main() -> None:
    """Answer messages until Ctrl-C."""
    server = os.environ.get("TELEGRAM_API_URL")  # address of your own Bot API server
    session = AiohttpSession(api=TelegramAPIServer.from_base(server) if server else PRODUCTION)
    dispatcher = Dispatcher()
    dispatcher.include_router(build_router())
    async with (
        MemoryClient.connect(
            os.environ.get("MNEMON_NATS_URL", "nats://127.0.0.1:4222"),
            tenant=os.environ.get("MNEMON_TENANT", "telegram"),
            timeouts=Timeouts(retry=3600),
        ) as memory,
        AsyncOpenAI(
            base_url=os.environ.get("MNEMON_MODEL_URL"), api_key=os.environ.get("OPENAI_API_KEY", "none")
        ) as model,
        Bot(os.environ["BOT_TOKEN"], session=session) as bot,
    ):
        await dispatcher.start_polling(bot, memory=memory, keeper=Keeper(), model=model)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    asyncio.run(main())
