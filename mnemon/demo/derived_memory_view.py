"""View of the derived memory in the demo."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mnemon.demo.panels import indent, render_heading
from mnemon.demo.report import DerivedMemory, ExtractedFact, ModelCalls

MAX_FACTS: Final = 6
"""Facts of each user that the demo shows."""

MAX_SUMMARIES: Final = 3
"""Newest summaries of each user that the demo shows: as many as a context has."""

_PURPOSES: Final = {"compact": "for summaries", "extract": "for facts"}


def render_derived_memory(learned: DerivedMemory) -> Iterator[RenderableType]:
    """Yield the summaries, the facts, and the calls of models for them."""
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
