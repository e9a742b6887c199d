"""Residence: whether the newer fact is about a permanent home."""

from mnemon_consumers.domain.alignment.comparison import FactComparison
from mnemon_consumers.domain.alignment.lexicon import is_date_or_unit, list_words
from mnemon_consumers.domain.alignment.morphology import is_cyrillic, list_grammemes, list_lemmas
from mnemon_consumers.domain.alignment.term import Term, TermKind


def keeps_home(facts: FactComparison) -> bool:
    """Return whether the newer fact may be about something other than a permanent home.

    For example, the result is True for "moved to the second floor", "moved to the Leeds office" and "moved to
    Leeds for the summer".
    """
    left, raw = facts.alignment, facts.new.raw
    following = [raw[at + 1 : at + 3] for at in range(len(raw))]
    if facts.new.is_changed and any(
        word in ("for", "на") and any(map(_is_duration, rest))
        for word, rest in zip(raw, following, strict=True)
    ):
        return True
    names = [term.place for term in facts.new.words if term.kind is TermKind.NAME and not term.is_head]
    others = [term for term in left.new if term.kind is TermKind.WORD and not _is_place(term)]
    first = next(
        (
            at
            for at, word in enumerate(raw)
            if word in list_words("home_prepositions")
            and not (is_cyrillic(word) and any(map(is_date_or_unit, following[at])))
        ),
        len(raw),
    )
    if facts.new.is_english:
        # "The" or "another" precedes a thing such as a floor, and no town.
        is_thing = not list_words("before_thing").isdisjoint(raw[first + 1 : first + 2])
        begin = names[0] if names else len(raw)
        return any(
            ((is_thing or term.text in list_words("groups")) and first < term.place < begin)
            or (names and term.place == begin + 1 and term.place + 1 not in names)
            for term in others
        )
    if not names:
        return bool(left.new) and not any(_is_place(term) or is_town(term) for term in left.new)
    return any("ADJF" not in list_grammemes(term.text) and first < term.place < names[0] for term in others)


def names_only_origin(facts: FactComparison) -> bool:
    """Return whether the newer fact names only the place from which a person came: "moved from York"."""
    names = [term for term in facts.alignment.new if term.kind is TermKind.NAME]
    return bool(names) and all(term.role == "from" for term in names)


def _is_place(term: Term) -> bool:
    """Return whether a term names a home, its surroundings or a country: "flat", "village", "UK"."""
    forms = term.text, *list_lemmas(term.text)
    return term.text in list_words("countries") or not list_words("places").isdisjoint(forms)


def is_town(term: Term) -> bool:
    """Return whether a Russian word is a geographical name, also in lower case: «казань» (Kazan)."""
    return "Geox" in list_grammemes(term.text)


def _is_duration(word: str) -> bool:
    """Return whether a date or unit may tell how long a stay is.

    In the prepositional or dative, such a word tells when something happens: «на прошлой неделе» (last
    week).
    """
    return is_date_or_unit(word) and list_grammemes(word).isdisjoint(("loct", "datv"))
