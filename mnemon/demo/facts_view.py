"""View of the facts in the demo."""

from collections.abc import Iterable, Iterator
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mnemon.demo.facts import CONTEXT_BUDGET, CONTEXT_QUERY
from mnemon.demo.panels import render_call, render_heading
from mnemon.demo.report import DemoFacts, DemoSearch, ForgottenFact, ProposedText
from mnemon.demo.sample import IVAN
from mnemon_contracts.events.memory import (
    Decision,
    FactConfirmedV1,
    FactRejectedV1,
    FactSavedV1,
    FactUpdatedV1,
)

_STYLES: Final = {
    "saved": "green",
    "confirmed": "cyan",
    "updated": "yellow",
    "refused": "red",
    "forgotten": "magenta",
}


def render_facts(facts: DemoFacts) -> Iterator[RenderableType]:
    """Yield the decisions on facts, the forgotten one, the searches, and a context with facts."""
    yield from render_heading("Facts: each kept once, or refused with a reason")
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


def _render_decisions(told: Iterable[ProposedText]) -> Table:
    rows = _create_rows()
    for each in told:
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
                _add_row(rows, "refused", rule, each.text, detail or "")
    return rows


def _describe_evidence(by: Decision | None) -> str:
    return by.evidence if by and by.evidence else "changed by hand"


def _render_forgotten(gone: ForgottenFact) -> Table:
    rows = _create_rows()
    _add_row(rows, "forgotten", gone.fact.id, gone.fact.text)
    return rows


def _render_left(facts: DemoFacts) -> Table:
    rows = _create_rows()
    for fact in facts.kept[facts.forgotten.user]:
        _add_row(rows, "", fact.id, fact.text)
    return rows


def _render_hits(found: DemoSearch) -> Table:
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="bold", no_wrap=True)
    rows.add_column(style="dim", no_wrap=True)
    rows.add_column(overflow="fold")
    for hit in found.hits:
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
