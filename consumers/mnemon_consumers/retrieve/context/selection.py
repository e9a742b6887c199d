"""Selection of the items of each section that fit in the section's tokens."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

from mnemon_consumers.retrieve.context.contents import (
    Context,
    ContextFact,
    ContextMessage,
    ContextSummary,
    Item,
    Passage,
    SectionKind,
)
from mnemon_consumers.retrieve.context.layout import ContextLayout, Count
from mnemon_contracts.settings.groups import Characters

TextCut: TypeAlias = Callable[[str, int], str]
"""Function that returns the beginning of a text, up to a number of tokens."""

WORTH_SHOWING: Final = 24
"""Minimum number of tokens that must be left to show the beginning of an item. The user's newest message in
`recent` has no minimum."""

MOST_MISSES: Final = 8
"""Maximum number of items that do not fit before the search for smaller items ends."""

MOST_CHARACTERS: Final = 16
"""Number of characters per token of room above which a text counts as too long, so that its tokens need not
be counted."""

SCORE_NOISE: Final = 0.02
"""Share of a score by which a lower score may differ and still count as nearly equal.

One step of importance changes a score by the same share.
"""

DEDUPLICATION_ORDER: Final[tuple[SectionKind, ...]] = (
    "facts",
    "working",
    "relevant",
    "user_data",
    "summaries",
    "documents",
    "recent",
    "conversation",
)
NOT_REPEATED_FROM: Final[Mapping[SectionKind, tuple[SectionKind, ...]]] = {
    "relevant": ("facts", "working"),
    "conversation": ("recent",),
}
"""For each section that must not repeat items of other sections: these sections, which are filled first."""


UNLIMITED: Final = Characters()


class ChosenItems(NamedTuple):
    """Items of a section in the order in which they are shown, and their tokens."""

    items: Sequence[Item] = ()
    tokens: int = 0


SectionSelection: TypeAlias = dict[SectionKind, ChosenItems]


class ItemChooser:
    """Chooses the items of each section that fit in the section's tokens, for one context in one format."""

    def __init__(
        self,
        context: Context,
        layout: ContextLayout,
        count: Count,
        cut: TextCut,
        characters: Characters = UNLIMITED,
    ) -> None:
        self.context = replace(
            context,
            facts=sorted(context.facts, key=_rank_fact),
            working=sorted(context.working, key=_rank_fact),
            relevant=_order_found_facts(context.relevant),
        )
        self._layout = layout
        self._count = count
        self._cut = cut
        self._characters: Mapping[SectionKind, int | None] = {
            "facts": characters.facts,
            "working": characters.working,
            "relevant": characters.relevant,
        }
        self._item_tokens: dict[tuple[SectionKind, int], tuple[Item, int]] = {}
        self._section_tokens: dict[tuple[SectionKind, tuple[int, ...]], tuple[Sequence[Item], int]] = {}

    def fill_sections(self, rooms: Mapping[SectionKind, int]) -> SectionSelection:
        """Choose items for every section; `rooms` has the maximum number of tokens of each section."""
        choice: SectionSelection = {}
        for section in DEDUPLICATION_ORDER:
            choice[section] = self._choose_section(
                section, self.list_candidates(section, choice), rooms[section]
            )
        return choice

    def extend_section(self, section: SectionKind, choice: SectionSelection, room: int) -> SectionSelection:
        """Return the choice with more items of a section; all sections together take at most `room` tokens.

        Items that the section shows now are dropped from sections that must not repeat them, which leaves
        more tokens for the section.
        """
        candidates = self.context.get_section(section)
        dependents = [other for other, earlier in NOT_REPEATED_FROM.items() if section in earlier]
        may_grow = list(choice[section].items) != list(candidates)
        while may_grow and (spare := room - count_total_tokens(choice)) > 0:
            allowed = choice[section].tokens + spare
            choice = choice | {section: self._choose_section(section, candidates, allowed)}
            may_grow = False
            for other in dependents:
                kept = _drop_repeated_items(other, choice[other].items, choice)
                if len(kept) < len(choice[other].items):
                    choice[other] = ChosenItems(kept, self._count_section_tokens(other, kept))
                    may_grow = True
        return choice

    def list_candidates(self, section: SectionKind, choice: SectionSelection) -> Sequence[Item]:
        """Return the items of a section, without the items that are shown in sections filled earlier.

        Of `conversation`, at most `conversation_limit` items are returned.
        """
        candidates = _drop_repeated_items(section, self.context.get_section(section), choice)
        return candidates[: self.context.conversation_limit] if section == "conversation" else candidates

    def _choose_section(self, section: SectionKind, candidates: Sequence[Item], room: int) -> ChosenItems:
        characters = self._characters.get(section)
        if characters is not None:
            candidates = self._limit_characters(section, candidates, characters)
        allowed = room
        while candidates and allowed > 0:
            items = self._choose_fitting_items(section, candidates, allowed)
            tokens = self._count_section_tokens(section, items)
            if tokens <= room:
                return ChosenItems(items, tokens)
            # Together the items may have more tokens than the sum of their tokens.
            allowed -= tokens - room
        return ChosenItems()

    def _limit_characters(
        self, section: SectionKind, candidates: Sequence[Item], characters: int
    ) -> Sequence[Item]:
        """Return whole items whose lines fit in a number of characters, in order of preference."""
        left = characters - self._layout.count_frame_tokens(section, len)
        fitting: list[Item] = []
        for item in candidates:
            length = self._layout.count_item_tokens(section, item, len)
            if length <= left:
                fitting.append(item)
                left -= length
        return fitting

    def _choose_fitting_items(
        self, section: SectionKind, candidates: Sequence[Item], room: int
    ) -> Sequence[Item]:
        left = room - self._layout.count_frame_tokens(section, self._count)
        match section:
            case "recent":
                return self._choose_newest_messages(candidates, left)
            case "summaries":
                return self._choose_leading_items(section, candidates[::-1], left)[::-1]
            case "conversation" | "documents":
                return self._choose_leading_items(section, candidates, left)
        return self._choose_whole_items(section, candidates, left)

    def _choose_whole_items(
        self, section: SectionKind, candidates: Sequence[Item], left: int
    ) -> Sequence[Item]:
        """Return whole items that fit, in order of preference.

        No item is cut, because half a fact may say the contrary.
        """
        shown: list[Item] = []
        for tried, item in enumerate(candidates):
            if tried - len(shown) == MOST_MISSES:
                break
            tokens = self._count_item_tokens(section, item, left)
            if tokens <= left:
                shown.append(item)
                left -= tokens
        return shown

    def _choose_leading_items(
        self, section: SectionKind, candidates: Sequence[Item], left: int
    ) -> list[Item]:
        """Return items in order of preference up to the first that does not fit.

        That item is cut, or left out if fewer than `WORTH_SHOWING` tokens are left.
        """
        shown: list[Item] = []
        for item in candidates:
            tokens = self._count_item_tokens(section, item, left)
            if tokens > left:
                beginning = self._shorten_item(section, item, left) if left >= WORTH_SHOWING else None
                return [*shown, beginning] if beginning else shown
            shown.append(item)
            left -= tokens
        return shown

    def _choose_newest_messages(self, messages: Sequence[Item], left: int) -> list[Item]:
        """Return the user's newest message and the newest other messages that fit, in the given order.

        If the user's newest message does not fit, only its beginning is returned. Otherwise the oldest of the
        other messages may be cut. Without a message of the user, return the newest messages that fit; the
        oldest of them may be cut.
        """
        asked = next((at for at in reversed(range(len(messages))) if _is_from_user(messages[at])), None)
        if asked is None:
            return self._choose_leading_items("recent", messages[::-1], left)[::-1]
        question: Item | None = messages[asked]
        tokens = self._count_item_tokens("recent", messages[asked], left)
        if tokens > left:
            question = self._shorten_item("recent", messages[asked], left)
            return [question] if question else []
        others = [*messages[:asked], *messages[asked + 1 :]]
        shown = self._choose_leading_items("recent", others[::-1], left - tokens)[::-1]
        after = min(len(shown), len(messages) - asked - 1)
        return [*shown[: len(shown) - after], messages[asked], *shown[len(shown) - after :]]

    def _shorten_item(self, section: SectionKind, item: Item, room: int) -> Item | None:
        if not isinstance(item, ContextMessage | ContextSummary | Passage):
            return None
        allowed = room - self._layout.count_item_tokens(section, item._replace(text=""), self._count)
        while allowed > 0:
            beginning = self._cut(item.text[: allowed * MOST_CHARACTERS], allowed).rstrip()
            if not beginning:
                return None
            shortened = item._replace(text=f"{beginning}…")
            over = self._layout.count_item_tokens(section, shortened, self._count) - room
            if over <= 0:
                return shortened
            allowed -= over
        return None

    def _count_item_tokens(self, section: SectionKind, item: Item, room: int | None = None) -> int:
        """Return the number of tokens of an item.

        For an item that cannot fit in `room` tokens, the result may be any number above `room`.
        """
        known = self._item_tokens.get((section, id(item)))
        if known is not None:
            return known[1]
        if room is None:
            return self._layout.count_item_tokens(section, item, self._count)
        longest = room * MOST_CHARACTERS
        tokens = self._layout.count_item_tokens(
            section, item, lambda text: self._count(text) if len(text) <= longest else room + 1
        )
        if tokens <= room:
            self._item_tokens[section, id(item)] = item, tokens  # a reference to the item keeps its id unique
        return tokens

    def _count_section_tokens(self, section: SectionKind, items: Sequence[Item]) -> int:
        """Return the number of tokens that a section needs to show exactly these items."""
        if not items:
            return 0
        key = section, tuple(map(id, items))
        known = self._section_tokens.get(key)
        if known is not None:
            return known[1]
        parts = sum(self._count_item_tokens(section, item) for item in items)
        parts += self._layout.count_frame_tokens(section, self._count)
        # `recent` is not counted as a whole: it is long, changes every time, and is counted with the context.
        if section != "recent":
            parts = max(parts, self._layout.count_section_tokens(section, items, self._count))
        self._section_tokens[key] = items, parts
        return parts


def count_total_tokens(choice: SectionSelection) -> int:
    """Return the tokens of all sections, each counted on its own."""
    return sum(chosen.tokens for chosen in choice.values())


def _rank_fact(fact: ContextFact) -> tuple[int, float]:
    return -fact.importance, -fact.changed_at.timestamp()


def _order_found_facts(facts: Sequence[ContextFact]) -> list[ContextFact]:
    """Return the facts, best first; of facts whose scores are nearly equal, the newer first."""
    groups: list[list[ContextFact]] = []
    for fact in sorted(facts, key=lambda fact: -fact.score):
        if groups and fact.score >= (1 - SCORE_NOISE) * groups[-1][0].score:
            groups[-1].append(fact)
        else:
            groups.append([fact])
    return [fact for group in groups for fact in sorted(group, key=lambda fact: -fact.changed_at.timestamp())]


def _is_from_user(item: Item) -> bool:
    return isinstance(item, ContextMessage) and item.role == "user"


def _drop_repeated_items(
    section: SectionKind, items: Sequence[Item], choice: SectionSelection
) -> Sequence[Item]:
    others = NOT_REPEATED_FROM.get(section, ())
    shown = {_find_id(item) for other in others for item in choice[other].items}
    return [item for item in items if _find_id(item) not in shown] if shown else items


def _find_id(item: Item) -> str | None:
    return item.id if isinstance(item, ContextFact | ContextMessage) else None
