"""Trimming of a context to a budget of tokens, which are counted in the rendered context."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, NamedTuple

from mnemon_consumers.retrieve.context.contents import (
    SECTIONS,
    Context,
    ContextMessage,
    ContextSummary,
    SectionKind,
)
from mnemon_consumers.retrieve.context.layout import ContextLayout, Count, Rendered
from mnemon_consumers.retrieve.context.selection import (
    UNLIMITED,
    ItemChooser,
    SectionSelection,
    TextCut,
    count_total_tokens,
)
from mnemon_contracts.settings.groups import Characters, Sections
from mnemon_contracts.verbs.ask import ContextCoverage, ContextSection

EXTENDED: Final[tuple[SectionKind, ...]] = ("facts", "working", "recent")
"""The sections that take the tokens that all sections leave unused, in this order."""


class FittedContext(NamedTuple):
    """A context within its budget.

    Attributes:
        context: the part of the context that is shown.
        rendered: the rendered form of this part; empty if nothing fits.
        tokens: tokens of the whole context, at most the budget.
        sections: a report for each section with items, shown or left out. The sum of their tokens may exceed
            `tokens`. Items that another section shows do not count as `left_out`.
        coverage: counts of all messages of the conversation; None if the counts are unknown.
    """

    context: Context
    rendered: Rendered
    tokens: int
    sections: Mapping[SectionKind, ContextSection]
    coverage: ContextCoverage | None


def fit_context(
    context: Context,
    layout: ContextLayout,
    budget: int,
    sections: Sections,
    count: Count,
    cut: TextCut,
    characters: Characters = UNLIMITED,
) -> FittedContext:
    """Choose the parts of a context that fit in at most `budget` tokens.

    A section takes at most the tokens that `sections` gives it; 0 leaves the section out. A section of facts
    also takes at most its `characters`. If all sections together need more than the budget, they divide it in
    the ratio of their tokens in `sections`; what a section does not need of its share goes to the others. The
    sections `EXTENDED` then take the tokens that all sections leave unused.

    `count` gets the same texts several times and should cache them. `cut` returns the beginning of a text, up
    to a number of tokens.
    """
    chooser = ItemChooser(context, layout, count, cut, characters)
    weights = {section: int(getattr(sections, section)) for section in SECTIONS}
    room = budget if any(weights.values()) else 0
    while True:
        choice = _choose_items(chooser, weights, max(room, 0))
        reports = _report_sections(chooser, choice)
        shown = _trim_context(context, choice, reports)
        rendered = layout.render(shown) if room > 0 else layout.nothing
        tokens = layout.count_tokens(rendered, count)
        if tokens <= budget:
            sections_shown, coverage = _add_message_counts(context, choice, reports)
            return FittedContext(shown, rendered, tokens, sections_shown, coverage)
        # The whole context has more tokens than its parts together.
        room -= tokens - budget


def _choose_items(chooser: ItemChooser, weights: Mapping[SectionKind, int], room: int) -> SectionSelection:
    choice = chooser.fill_sections({section: min(weight, room) for section, weight in weights.items()})
    if count_total_tokens(choice) > room:
        wanted = {section: chosen.tokens for section, chosen in choice.items()}
        choice = chooser.fill_sections(_divide_room(wanted, weights, room))
    for section in EXTENDED:
        if weights[section]:
            choice = chooser.extend_section(section, choice, room)
    return choice


def _divide_room(
    requested: Mapping[SectionKind, int], weights: Mapping[SectionKind, int], room: int
) -> dict[SectionKind, int]:
    """Return the tokens of each section, at most `room` in total.

    A section gets the requested tokens if its share by weight allows them. The other sections divide the
    remaining tokens by weight.
    """
    shares = dict(requested)
    wanting = {section for section, tokens in requested.items() if tokens}
    while wanting:
        weight = sum(weights[section] for section in wanting)
        modest = {section for section in wanting if requested[section] * weight <= room * weights[section]}
        if not modest:
            return shares | {section: room * weights[section] // weight for section in wanting}
        room -= sum(requested[section] for section in modest)
        wanting -= modest
    return shares


def _trim_context(
    context: Context, choice: SectionSelection, reports: Mapping[SectionKind, ContextSection]
) -> Context:
    items: dict[str, Any] = {section: chosen.items for section, chosen in choice.items()}
    trimmed = any(report.left_out for report in reports.values())
    return replace(context, **items, trimmed=trimmed)


def _report_sections(chooser: ItemChooser, choice: SectionSelection) -> dict[SectionKind, ContextSection]:
    reports: dict[SectionKind, ContextSection] = {}
    for section, (items, tokens) in choice.items():
        not_considered = chooser.context.not_considered.get(section, 0)
        left_out = len(chooser.list_candidates(section, choice)) - len(items) + not_considered
        if items or left_out:
            whole = set(map(id, chooser.context.get_section(section)))
            cut = any(id(item) not in whole for item in items)
            reports[section] = ContextSection(tokens=tokens, shown=len(items), left_out=left_out, cut=cut)
    return reports


def _add_message_counts(
    context: Context, choice: SectionSelection, reports: Mapping[SectionKind, ContextSection]
) -> tuple[Mapping[SectionKind, ContextSection], ContextCoverage | None]:
    """Return the reports with the numbers of messages that are left out, and the coverage.

    If the messages of the conversation are unknown, the reports are unchanged and the coverage is None.
    """
    if context.extent is None:
        return reports, None
    shown = [item for item in choice["summaries"].items if isinstance(item, ContextSummary)]
    accounted = context.extent.count_messages(_find_shown_messages(context, choice), shown)
    left_out: dict[SectionKind, int] = {
        "recent": accounted.left_out,
        "summaries": accounted.in_summaries_left_out,
    }
    added = {
        section: reports.get(section, ContextSection()).model_copy(update={"messages_left_out": messages})
        for section, messages in left_out.items()
        if section in reports or messages
    }
    return {**reports, **added}, accounted.coverage


def _find_shown_messages(context: Context, choice: SectionSelection) -> set[str]:
    """Return event ids of shown messages; a message with words does not count if only its tools are named."""
    found = {item.id for item in choice["conversation"].items if isinstance(item, ContextMessage)}
    items = Counter(item.id for item in choice["recent"].items if isinstance(item, ContextMessage))
    whole = Counter(item.id for item in context.recent)
    return found | {event_id for event_id, number in items.items() if number >= whole[event_id]}
