"""Output of `mnemon chat`: the conversation, and the user's memory."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from mnemon.display_text import make_printable
from mnemon_contracts.fact_lines import name_importance
from mnemon_contracts.verbs.ask import ContextReplyV1, ContextSection
from mnemon_contracts.verbs.tools import FactCandidate, SaveReplyV1, SearchHitV2, SearchReplyV2, StoredFact

BAR_COLUMNS: Final = 24
"""Width, in columns, of the bar of the largest section."""

_ROLES: Final = {"user": "cyan", "assistant": "green", "tool": "yellow", "system": "magenta"}


class ChatScreen:
    """Output of the chat on a console: in colour on a terminal, plain in a pipe."""

    def __init__(self, console: Console) -> None:
        self._console = console

    @property
    def is_terminal(self) -> bool:
        return self._console.is_terminal

    def show_note(self, text: str) -> None:
        """Show a remark that is not part of the conversation."""
        self._console.print(Text(text, style="dim"), soft_wrap=True)

    def show_spinner(self, activity: str) -> AbstractContextManager[object]:
        """Show a spinner with the text `activity` until the end of the block, if the output is a terminal."""
        return self._console.status(Text(activity, style="dim")) if self.is_terminal else nullcontext()

    def show_error(self, text: str) -> None:
        """Show an error, in red."""
        self._console.print(Text(text, style="red"), soft_wrap=True)

    def show_piece(self, text: str) -> None:
        """Show a piece of an answer as it arrives."""
        self._console.print(Text(make_printable(text)), end="", soft_wrap=True)

    def end_line(self) -> None:
        """End the line after an answer."""
        self._console.print()

    def show_context(self, reply: ContextReplyV1) -> None:
        """Show the messages of a context, then the tokens of each section and of the whole context."""
        for message in reply.messages:
            self._console.print(Text(message.name or message.role, style=_ROLES[message.role]))
            self._console.print(Text(make_printable(message.content)), soft_wrap=True)
        if not reply.messages:
            self.show_note("The context is empty.")
        self._console.print()
        self._show_sections(reply.sections)
        self.show_note(f"{reply.tokens or 0:,} tokens")
        self._show_missing(reply.degraded)

    def show_facts(self, facts: Sequence[StoredFact]) -> None:
        """Show facts as a table; without facts, explain where facts come from."""
        if not facts:
            self.show_note(
                "No facts yet. They are extracted from messages once you pause; /save TEXT saves one."
            )
            return
        table = _create_table("id", "tier", "importance", "until", "fact")
        for fact in facts:
            until = f"{fact.expires_at:%Y-%m-%d}" if fact.expires_at else ""
            table.add_row(
                fact.id, fact.tier, name_importance(fact.importance), until, Text(make_printable(fact.text))
            )
        self._console.print(table)

    def show_decision(self, reply: SaveReplyV1) -> None:
        """Show the decision on a fact that the user saves or restores."""
        self.show_note(f"{reply.decision}: {reply.reason if reply.decision == 'rejected' else reply.id}")

    def show_candidates(self, candidates: Sequence[FactCandidate]) -> None:
        """Show the facts that a query may mean, numbered, and explain how to choose one."""
        self.show_note("Nothing was forgotten: the words do not clearly mean one fact.")
        table = _create_table("", "id", "fact")
        for number, candidate in enumerate(candidates, 1):
            table.add_row(str(number), candidate.id, Text(make_printable(candidate.text)))
        self._console.print(table)
        others = "; other numbers remove the others" if len(candidates) > 1 else ""
        self.show_note(f"/forget 1 removes {candidates[0].id}{others}.")

    def show_search(self, query: str, reply: SearchReplyV2, context: ContextReplyV1) -> None:
        """Show a query and its hits with the parts of their scores; mark hits that are in the context."""
        self.show_note(f"Query: {query}")
        given = "\n".join(message.content for message in context.messages)
        table = _create_table("score", "", "found", "")
        for hit in reply.hits:
            shown = Text("shown", style="green") if hit.text in given else Text("")
            table.add_row(f"{hit.score:.2f}", shown, _name_hit(hit), _explain_hit(hit))
        if reply.hits:
            self._console.print(table)
        else:
            self.show_note("No hits.")
        always = ", ".join(
            f"{name} {section.shown}" for name, section in context.sections.items() if section.shown
        )
        self.show_note(f"In the context: {always or 'nothing'}. /context shows it.")
        self._show_missing(reply.degraded)

    def show_commands(self, commands: Iterable[tuple[str, str]]) -> None:
        """Show the usage and the meaning of commands."""
        table = Table(box=None, show_header=False, pad_edge=False)
        for usage, meaning in commands:
            table.add_row(Text(usage, style="bold"), meaning)
        self._console.print(table)

    def _show_sections(self, sections: Mapping[str, ContextSection]) -> None:
        most = max((section.tokens for section in sections.values()), default=0)
        table = Table(box=None, show_header=False, pad_edge=False)
        for name, section in sections.items():
            if not (section.tokens or section.left_out):
                continue
            bar = "█" * max(1, round(BAR_COLUMNS * section.tokens / most)) if section.tokens else ""
            what = f"{section.shown} shown"
            what += f", {section.left_out} left out" if section.left_out else ""
            what += ", one of them cut" if section.cut else ""
            table.add_row(name, Text(bar, style="blue"), Text(f"{section.tokens:,}", justify="right"), what)
        self._console.print(table)

    def _show_missing(self, parts: Sequence[str]) -> None:
        if parts:
            self.show_error(f"missing: {', '.join(parts)}")


def _create_table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _name_hit(hit: SearchHitV2) -> str:
    match hit.scope:
        case "memories":
            return hit.id
        case "documents":
            return f"document {hit.id}"
    return f"{hit.at:%Y-%m-%d %H:%M}" if hit.at else ""


def _explain_hit(hit: SearchHitV2) -> Text:
    text = Text(make_printable(" ".join(hit.text.split())))
    if hit.parts:
        parts = ", ".join(f"{name} {part:.2f}" for name, part in hit.parts.items())
        text.append(f"\n{parts}", style="dim")
    return text
