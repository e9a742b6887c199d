"""Conversation of a user with a model that gets the context, with slash commands for the memory."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, NamedTuple

from mnemon.chat.screen import ChatScreen
from mnemon.display_text import make_printable
from mnemon_contracts.base import InvalidBody
from mnemon_contracts.verbs.ask import ContextReplyV1
from mnemon_contracts.verbs.tools import ForgetReplyV1, Scope, SearchReplyV2
from mnemon_infra.models.language.openai.model import OpenAIModel
from mnemon_infra.models.language.port import ModelRefused, ModelUnavailable, RequestRefused
from mnemon_producers.client import MemoryClient
from mnemon_producers.errors import AskFailed, PublishFailed

EXIT: Final = "/exit"
SEARCH_SCOPES: Final[tuple[Scope, ...]] = ("memories", "messages", "documents")

_FACT_ID: Final = re.compile(r"[A-Za-z]+_[0-9]+")
_MODEL_FAILED: Final = (ModelUnavailable, ModelRefused, RequestRefused)


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """The last message of the user, the context for its answer, and the hits of a search for the message."""

    text: str
    context: ContextReplyV1
    found: SearchReplyV2


class SlashCommand(NamedTuple):
    """A command that begins with a slash: its usage, its meaning, and the function that runs it."""

    usage: str
    meaning: str
    run: Callable[[str], Awaitable[None]]


class ChatConversation:
    """Conversation of one user with a model, line by line.

    Args:
        memory: client of the tenant that the user belongs to.
        user: the user who talks.
        model: the model that answers; None shows the context that a model would get.
        screen: the output.
        budget: maximum tokens of a context; None means the setting `context.budget`.

    Attributes:
        failed: whether a message or a command has failed.
        commands: the commands by name, without `/exit`.
    """

    def __init__(
        self,
        memory: MemoryClient,
        user: str,
        model: OpenAIModel | None,
        screen: ChatScreen,
        budget: int | None,
    ) -> None:
        self._memory = memory
        self._user = user
        self._model = model
        self._screen = screen
        self._budget = budget
        self._last: ChatTurn | None = None
        self._started = 0
        self._answering: asyncio.Task[None] | None = None
        self._candidates: Mapping[str, str] = {}
        self._forgotten: ForgetReplyV1 | None = None
        self.failed = False
        self.commands: Mapping[str, SlashCommand] = {
            command.usage.split()[0]: command
            for command in (
                SlashCommand(
                    "/context",
                    "show the context of the last answer, with its tokens",
                    self._show_context,
                ),
                SlashCommand("/why", "show the search for the last message, with scores", self._show_search),
                SlashCommand("/facts", "list the facts about you", self._list_facts),
                SlashCommand("/save TEXT", "save a fact", self._save_fact),
                SlashCommand(
                    "/forget ID or WORDS",
                    "forget the fact with this id, or the one that these words mean",
                    self._forget_fact,
                ),
                SlashCommand("/restore", "restore the fact that was removed last", self._restore_fact),
                SlashCommand(
                    "/new",
                    "start a new conversation: messages are discarded, facts stay",
                    self._start_conversation,
                ),
                SlashCommand("/help", "list the commands", self._show_help),
            )
        }

    @property
    def status_line(self) -> str:
        """Status line: the user, the model and the tokens of the last context."""
        who = self._model.model if self._model else "offline"
        tokens = f" · context {self._last.context.tokens or 0:,} tokens" if self._last else ""
        return f" {self._user} · {who}{tokens} · /help"

    def interrupt(self) -> None:
        """Cancel the answer that is being shown."""
        if self._answering:
            self._answering.cancel()

    async def answer_lines(self, lines: AsyncIterator[str]) -> None:
        """Answer each line until the lines end, or a line is `/exit`."""
        async for line in lines:
            text = line.strip()
            if text == EXIT:
                return
            if text:
                await self._handle_line(text)

    async def _handle_line(self, text: str) -> None:
        name, _, rest = text.partition(" ")
        try:
            if not text.startswith("/"):
                await self._send_message(text)
            elif name in self.commands:
                await self.commands[name].run(rest.strip())
            else:
                self._report_error(f"There is no command {name}. List the commands: /help")
        except (AskFailed, PublishFailed, InvalidBody) as error:
            self._report_error(str(error))
        except _MODEL_FAILED as error:
            self._report_error(f"No answer: {error}")

    async def _send_message(self, text: str) -> None:
        said = await self._memory.publish(self._user, "user", text)
        context = await self._memory.context(self._user, query=text, min_seq=said, budget=self._budget)
        self._last = ChatTurn(text, context, await self._search_message(text, said))
        if context.error:
            self._report_error(f"Answering without memory: {context.error.message}")
        if self._model is None:
            self._screen.show_note("No model is set. A model would get this context:\n")
            self._screen.show_context(context)
            return
        answered = await self._stream_answer(self._model, text)
        if answered:
            await self._memory.publish(self._user, "assistant", answered)

    async def _stream_answer(self, model: OpenAIModel, text: str) -> str:
        """Show the answer as it arrives and return it; return only the shown part after an interruption."""
        assert self._last
        given = [
            {"role": "system" if each.role == "tool" else each.role, "content": each.content}
            for each in self._last.context.messages
        ]
        pieces: list[str] = []

        async def show() -> None:
            async with aclosing(model.stream_reply(given or [{"role": "user", "content": text}])) as stream:
                async for piece in stream:
                    pieces.append(piece)
                    self._screen.show_piece(piece)

        self._answering = asyncio.create_task(show())
        try:
            await asyncio.wait([self._answering])
            if not self._answering.cancelled():
                self._answering.result()
        finally:
            self._answering.cancel()
            self._screen.end_line()
        return "".join(pieces).strip()

    async def _show_context(self, _: str) -> None:
        if self._last is None:
            self._screen.show_context(await self._memory.context(self._user, min_seq=self._started))
        else:
            self._screen.show_context(self._last.context)

    async def _show_search(self, _: str) -> None:
        if self._last is None:
            self._screen.show_note("No message yet.")
        else:
            self._screen.show_search(self._last.text, self._last.found, self._last.context)

    async def _search_message(self, text: str, min_seq: int) -> SearchReplyV2:
        """Return the hits for a message, except hits with the same text.

        The reply to a failed search has no hits, and the error code in `degraded`.

        Call this before the answer is published: a later search would find the answer, too.
        """
        try:
            found = await self._memory.search(
                self._user, text, scope=SEARCH_SCOPES, explain=True, min_seq=min_seq
            )
        except AskFailed as failed:
            return SearchReplyV2(degraded=(failed.code,))
        # The message that was just published is a hit for its own text: leave out hits with the same text.
        return found.model_copy(update={"hits": tuple(hit for hit in found.hits if hit.text != text)})

    async def _list_facts(self, _: str) -> None:
        self._screen.show_facts((await self._memory.read_all(self._user)).facts)

    async def _save_fact(self, text: str) -> None:
        if not text:
            self._report_error("Add the fact: /save I am allergic to penicillin")
            return
        self._screen.show_decision(await self._memory.save(self._user, text))

    async def _forget_fact(self, what: str) -> None:
        if not what:
            self._report_error("Add the fact: /forget pf_001, or /forget where I live")
            return
        if self._candidates and what.isdecimal() and what not in self._candidates:
            count = len(self._candidates)
            numbers = {1: "1", 2: "1 or 2"}.get(count, f"1 to {count}")
            self._report_error(f"The list has no fact {what}: choose {numbers}.")
            return
        # Numbers of candidates are valid only in the next /forget.
        offered, self._candidates = self._candidates, {}
        fact_id = offered.get(what)
        if fact_id is None:
            facts = {fact.id for fact in (await self._memory.read_all(self._user)).facts}
            fact_id = what if what in facts or _FACT_ID.fullmatch(what) else None
        try:
            reply = await self._memory.forget(self._user, fact_id, query=what if fact_id is None else None)
        except AskFailed as failed:
            if failed.code != "not_found":
                raise
            problem = "No fact fits these words" if fact_id is None else f"There is no fact {fact_id}"
            self._report_error(f"{problem}. List the facts: /facts")
            return
        if reply.id is None:
            self._candidates = {str(number): each.id for number, each in enumerate(reply.candidates, 1)}
            self._screen.show_candidates(reply.candidates)
            return
        self._forgotten = reply
        restoration = "" if reply.restore is None else "\n/restore restores it."  # none if it had expired
        self._screen.show_note(f"Forgotten: {reply.id} {make_printable(reply.text or '')}{restoration}")

    async def _restore_fact(self, _: str) -> None:
        if self._forgotten is None:
            self._report_error("There is no fact to restore: /restore follows a /forget that removed one.")
            return
        self._screen.show_decision(await self._memory.restore(self._user, self._forgotten))
        self._forgotten = None

    async def _start_conversation(self, _: str) -> None:
        self._started = await self._memory.start(self._user, discard_previous=True)
        self._last = None
        self._screen.show_note("Started a new conversation. Earlier messages are discarded, facts stay.")

    async def _show_help(self, _: str) -> None:
        known = [(command.usage, command.meaning) for command in self.commands.values()]
        self._screen.show_commands([*known, (EXIT, "end the chat")])

    def _report_error(self, text: str) -> None:
        self.failed = True
        self._screen.show_error(text)
