"""Output of the demo on a terminal or in a pipe."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.panel import Panel
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from mnemon.demo.facts import CONTEXT_BUDGET, CONTEXT_QUERY
from mnemon.demo.report import (
    BotReplies,
    DemoFacts,
    DemoReport,
    DemoSearch,
    DerivedMemory,
    ExtractedFact,
    ForgottenFact,
    ModelCalls,
    ProposedText,
    RemovedMessages,
)
from mnemon.demo.sample import IVAN
from mnemon.display_text import spell_command
from mnemon_contracts.base import JsonObject
from mnemon_contracts.events.memory import (
    Decision,
    FactConfirmedV1,
    FactRejectedV1,
    FactSavedV1,
    FactUpdatedV1,
)
from mnemon_contracts.verbs.ask import RenderedMessage

if TYPE_CHECKING:
    from mnemon_infra.broker.dead_letters.listing import Letter

WIDTH: Final = 100
"""Maximum width in columns: longer lines are hard to read."""

_ROLES: Final = {"user": "cyan", "assistant": "green", "tool": "yellow", "system": "magenta"}

_OUTCOMES: Final = {
    "messages_kept": "messages stored, for a bot to ask for",
    "messages_discarded": "messages discarded by /new",
    "messages_cleared": "messages cleared with their conversation",
    "conversations_started": "start of a conversation by /new",
    "conversations_cleared": "clearing of a conversation",
    "profile_changes": "changes of a user's data",
    "duplicates": "duplicate, recognised",
    "dead_letters": "dead letters, kept with their reasons",
}

_INTRODUCTION: Final = (
    "[bold]mnemon demo[/]: two weeks of a bot with three people. Anna writes in English, Иван in Russian, "
    "Lena in both. Their messages are published to NATS JetStream, persisted in PostgreSQL, indexed by "
    "Qdrant, and asked for as a bot asks. The servers run in a temporary folder, removed at the end.\n"
)


class DemoScreen:
    """Output of the demo's progress; on a terminal, its `with` block has progress bars."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[count]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._starting = self._bars.add_task("starting", total=None, count="")
        self._published = self._bars.add_task("published", visible=False, count="")
        self._persisted = self._bars.add_task("persisted", visible=False, count="")

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def report_start(self, what: str, seconds: float) -> None:
        """Report that servers or consumers answer, and the seconds that their start took."""
        self._console.print(_render_step(what, seconds))

    def report_published(self, events: int, of: int) -> None:
        """Report the number of events that were sent, and the number of all events of the sample."""
        self._bars.update(self._starting, visible=False)
        self._show_bar(self._published, events, of)

    def report_persisted(self, position: int, of: int) -> None:
        """Report the number of persisted events; an event that was sent twice counts once."""
        self._show_bar(self._persisted, position, of)

    def _show_bar(self, bar: TaskID, completed: int, of: int) -> None:
        self._bars.update(bar, completed=completed, total=of, count=f"{completed}/{of}", visible=True)


def create_console(*, quiet: bool = False) -> Console:
    """Return a console on the standard output, at most `WIDTH` columns wide; `quiet` discards its output."""
    terminal = Console(quiet=quiet, highlight=False)
    terminal.width = min(terminal.width, WIDTH)
    return terminal


def show_introduction(console: Console) -> None:
    """Show the text that explains the demo before it begins."""
    console.print(_INTRODUCTION)


def show_report(report: DemoReport, console: Console) -> None:
    """Show the report, and the next steps."""
    remembered = report.replies
    sent = f"{report.published} events published, {report.log_events} new, all persisted"
    console.print(_render_step(sent, report.seconds["events"]))
    if report.facts:
        told = (
            f"{len(report.facts.proposed)} facts proposed, {sum(map(len, report.facts.kept.values()))} kept"
        )
        console.print(_render_step(told, report.seconds["facts"]))
    if report.derived:
        summaries = sum(map(len, report.derived.summaries.values()))
        done = f"{summaries} summaries written, {len(report.derived.facts)} facts extracted"
        console.print(_render_step(done, report.seconds["learning"]))
    console.print()
    for part in (
        *(render_facts(report.facts) if report.facts else ()),
        *render_heading("The bot's memory"),
        render_call(
            'memory.context("anna")', "messages to send to a model", _render_messages(remembered.context)
        ),
        render_call(
            'memory.history("иван", limit=8)', "the last messages", _render_messages(remembered.history)
        ),
        render_call('memory.profile("иван")', "the user's data", _render_fields(remembered.profile)),
        "",
        *(render_derived_memory(report.derived) if report.derived else ()),
        *render_heading("Removed messages, duplicates and dead letters"),
        *(_render_discarded(removed) for removed in report.discarded),
        *(_render_cleared(removed, remembered) for removed in report.cleared),
        *(
            f"[bold]Sent twice, stored once:[/] [cyan]“{escape(duplicate.content)}”[/], id {duplicate.id}\n"
            for duplicate in report.duplicates
        ),
        "[bold]Invalid events, kept as dead letters with the reason:[/]",
        _render_letters(report.dead_letters),
        *render_heading(f"Outcomes of the {report.published} events"),
        _render_outcomes(report),
        *render_heading("Next steps"),
        _render_next_steps(),
    ):
        console.print(part)


def _render_step(what: str, seconds: float) -> RenderableType:
    line = Table.grid(padding=(0, 1))
    line.add_column()
    line.add_column(min_width=58)
    line.add_column(justify="right", style="dim")
    line.add_row("[green]✓[/]", what, f"{seconds:.1f} s")
    return line


def _render_messages(messages: Iterable[RenderedMessage], style: str = "") -> Table:
    chat = Table.grid(padding=(0, 2))
    chat.add_column(justify="right", no_wrap=True)
    chat.add_column(overflow="fold", style=style)
    for message in messages:
        chat.add_row(Text(message.role, style=_ROLES[message.role]), Text(message.content))
    return chat


def _render_fields(fields: JsonObject) -> Table:
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="magenta", no_wrap=True)
    for name, value in fields.items():
        rows.add_row(Text(name), Text(_format_value(value)))
    return rows


def _format_value(value: object) -> str:
    match value:
        case Mapping():
            return ", ".join(f"{name}: {_format_value(inner)}" for name, inner in value.items())
        case list():
            return ", ".join(map(_format_value, value))
    return str(value)


def _render_discarded(removed: RemovedMessages) -> RenderableType:
    return Group(
        f"[bold]Anna tried the bot out, then sent /new:[/] {removed.count} messages were discarded, such as",
        indent(_render_messages(removed.messages[2:6], style="dim strike")),
    )


def _render_cleared(removed: RemovedMessages, remembered: BotReplies) -> RenderableType:
    return Group(
        f"[bold]Lena cleared one conversation:[/] {removed.count} messages were removed. Its new ones:",
        indent(_render_messages(remembered.cleared[:2])),
    )


def _render_letters(letters: "Sequence[Letter]") -> RenderableType:
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="dim", no_wrap=True)
    rows.add_column(overflow="fold")
    for number, letter in enumerate(letters):
        if number:
            rows.add_row()
        rows.add_row("subject", Text(letter.subject))
        rows.add_row("body", Text(letter.body.decode(errors="replace"), style="dim"))
        rows.add_row(letter.reason, Text(letter.error, style="red"))
    return indent(rows)


def _render_outcomes(report: DemoReport) -> RenderableType:
    rows = Table.grid(padding=(0, 2))
    rows.add_column(justify="right", style="bold")
    rows.add_column()
    for name, count in report.outcomes.items():
        rows.add_row(str(count), _OUTCOMES[name])
    rows.add_row("─" * len(str(report.published)), "")
    verdict = (
        "[green]every event is accounted for[/]"
        if report.is_balanced
        else "[red]some events are not accounted for[/]"
    )
    rows.add_row(str(sum(report.outcomes.values())), verdict)
    return Group(
        indent(rows),
        f"{report.seconds['total']:.1f} s in all. The servers have ended, and their folder is removed.\n",
    )


def _render_next_steps() -> RenderableType:
    code = (files("mnemon.demo") / "first_bot.py").read_text(encoding="utf-8").strip()
    return Group(
        "[bold]Start a stack that keeps its data[/] in ./memory:",
        _render_commands(spell_command("mnemon up --data ./memory --nats-port 4222")),
        "[bold]A bot in Python:[/]",
        indent(Syntax(code, "python", theme="ansi_dark", background_color="default"), above=1),
        "[bold]A bot in any other language[/] uses NATS directly, as here:",
        _render_commands(
            """nats pub chat.acme.u42.-.message.v1 '{"role":"user","content":"hi"}'""",
            """nats req ask.acme.u42.history.v1 '{"limit":30}'""",
        ),
        "[bold]Inspect it:[/]",
        _render_commands(spell_command("mnemon status --data ./memory"), spell_command("mnemon --help")),
    )


def _render_commands(*commands: str) -> RenderableType:
    return indent(Text("\n".join(f"$ {command}" for command in commands), style="cyan"), above=1)


def render_heading(title: str) -> Iterable[RenderableType]:
    """Return a heading with a blank line below."""
    return Text(title, style="bold underline"), Text()


def indent(content: RenderableType, above: int = 0) -> RenderableType:
    """Return `content` indented, with a blank line below and `above` blank lines above."""
    return Padding(content, (above, 0, 1, 2), expand=False)


def render_call(expression: str, meaning: str, content: RenderableType) -> RenderableType:
    """Return a call above a panel with its reply as content, and the meaning of the reply below."""
    return Group(
        Text(f"await {expression}", style="bold", overflow="fold"),
        Panel(
            content, subtitle=f"[dim]{meaning}[/]", subtitle_align="right", border_style="dim", padding=(1, 2)
        ),
    )


MAX_FACTS: Final = 6
"""Maximum number of facts of each user that the demo shows."""

MAX_SUMMARIES: Final = 3
"""Maximum number of newest summaries of each user that the demo shows: as many as a context has."""

_PURPOSES: Final = {"compact": "for summaries", "extract": "for facts"}


def render_derived_memory(learned: DerivedMemory) -> Iterator[RenderableType]:
    """Yield the summaries, the facts, and the calls of models that derived both."""
    yield from render_heading("Derived in the background, without a request")
    yield "[bold]Summaries in place of old messages[/] (the newest ones):"
    yield indent(_render_summaries(learned.summaries))
    count = ", ".join(f"{number} {name}" for name, number in learned.decisions.items())
    yield f"[bold]Facts extracted from messages[/] ({count}), with the day of the message:"
    yield indent(_render_extracted(learned.facts))
    yield Group("[bold]Calls of language models[/]", indent(_render_model_calls(learned.model_calls)))
    if learned.model is None:
        yield "[dim]`offline` did this: rules that know a few phrases. A language model does better:[/]"
        yield indent(
            Text(
                "$ MNEMON_MODEL_URL=http://localhost:11434/v1 MNEMON_MODEL=qwen3:8b mnemon demo", style="cyan"
            )
        )


def _render_summaries(summaries: Mapping[str, Sequence[str]]) -> Table:
    rows = _create_grid("cyan", "")
    for user, texts in summaries.items():
        for number, text in enumerate(texts[-MAX_SUMMARIES:]):
            rows.add_row(Text("" if number else user), Text(text))
    return rows


def _render_extracted(drawn: Sequence[ExtractedFact]) -> Table:
    rows = _create_grid("cyan", "dim", "", "dim")
    for user in dict.fromkeys(each.user for each in drawn):
        of_user = [each for each in drawn if each.user == user]
        for number, each in enumerate(of_user[:MAX_FACTS]):
            said = f"{each.source.sent_at:%d %B}" if each.source and each.source.sent_at else ""
            rows.add_row(Text("" if number else user), Text(each.id), Text(each.text), Text(said))
        if len(of_user) > MAX_FACTS:
            rows.add_row("", "", Text(f"and {len(of_user) - MAX_FACTS} more", style="dim"), "")
    return rows


def _render_model_calls(spent: Mapping[str, ModelCalls]) -> Table:
    rows = _create_grid("cyan", "", "dim")
    for purpose, of in spent.items():
        asked = f"{of.calls} calls, {of.input_tokens:,} tokens in, {of.output_tokens:,} out"
        rows.add_row(Text(of.model), Text(_PURPOSES[purpose]), Text(asked))
    return rows


def _create_grid(*styles: str) -> Table:
    rows = Table.grid(padding=(0, 2))
    for style in styles:
        rows.add_column(style=style, overflow="fold")
    return rows


_STYLES: Final = {
    "saved": "green",
    "confirmed": "cyan",
    "updated": "yellow",
    "rejected": "red",
    "forgotten": "magenta",
}


def render_facts(facts: DemoFacts) -> Iterator[RenderableType]:
    """Yield the decisions on facts, the forgotten fact, the searches, and a context with facts."""
    yield from render_heading("Facts: each kept once, or rejected with a reason")
    for user in facts.kept:
        told = [each for each in facts.proposed if each.user == user]
        yield render_call(f'memory.save("{user}", ...)', "decisions, in this order", _render_decisions(told))
    gone = facts.forgotten
    left = Group(_render_forgotten(gone), Text("\nremaining:", style="dim"), _render_left(facts))
    yield render_call(
        f'memory.forget("{gone.user}", query="{gone.query}")', "no reply contains it any more", left
    )
    yield ""
    yield from render_heading("Searches")
    for found in facts.searches:
        scope = "" if found.scope == "memories" else f', scope=["{found.scope}"]'
        yield render_call(
            f'memory.search("{found.user}", "{found.query}"{scope})', "best first", _render_hits(found)
        )
    text = Text(facts.context.text or "")
    tokens = f"{facts.context.tokens} tokens"
    asked = f'memory.context("{IVAN}", query="{CONTEXT_QUERY}", format="xml", budget={CONTEXT_BUDGET})'
    yield render_call(asked, tokens, text)
    yield ""


def _render_decisions(proposals: Iterable[ProposedText]) -> Table:
    rows = _create_rows()
    for each in proposals:
        match each.event:
            case FactSavedV1(fact_id=fact_id, fact=fact):
                _add_row(rows, "saved", fact_id, each.text, f"{fact.tier}, importance {fact.importance}")
            case FactConfirmedV1(fact_id=fact_id):
                _add_row(rows, "confirmed", fact_id, each.text, "known already")
            case FactUpdatedV1(fact_id=fact_id, former=former, decision=by):
                _add_row(
                    rows, "updated", fact_id, each.text, f"was “{former.text}”; {_describe_evidence(by)}"
                )
            case FactRejectedV1(reason=rule, detail=detail):
                _add_row(rows, "rejected", rule, each.text, detail or "")
    return rows


def _describe_evidence(by: Decision | None) -> str:
    return by.evidence if by and by.evidence else "changed by `update`"


def _render_forgotten(gone: ForgottenFact) -> Table:
    rows = _create_rows()
    _add_row(rows, "forgotten", gone.fact.id, gone.fact.text)
    return rows


def _render_left(facts: DemoFacts) -> Table:
    rows = _create_rows()
    for fact in facts.kept[facts.forgotten.user]:
        _add_row(rows, "", fact.id, fact.text)
    return rows


def _render_hits(search: DemoSearch) -> Table:
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="bold", no_wrap=True)
    rows.add_column(style="dim", no_wrap=True)
    rows.add_column(overflow="fold")
    for hit in search.hits:
        rows.add_row(f"{hit.score:.2f}", Text(hit.id), Text(hit.text))
    return rows


def _create_rows() -> Table:
    rows = Table.grid(padding=(0, 2))
    rows.add_column(no_wrap=True, min_width=9)
    rows.add_column(style="dim", no_wrap=True, min_width=9)
    rows.add_column(overflow="fold")
    return rows


def _add_row(rows: Table, what: str, which: str, text: str, more: str = "") -> None:
    said = Text(text)
    if more:
        said.append(f"\n{more}", style="dim")
    rows.add_row(Text(what, style=_STYLES.get(what, "")), which, said)
