"""Leading statement of a newer fact that goes on with a further state: "Sold the car and now cycles"."""

from collections.abc import Sequence

from mnemon_consumers.domain.alignment.lexicon import list_words
from mnemon_consumers.domain.alignment.parser import parse_fact
from mnemon_consumers.domain.alignment.term import begins_with_verb


def find_leading_statement(text: str) -> str | None:
    """Return the statement of a fact that precedes "and now" or the like; None if there is no such statement.

    For example, this is "Sold the car" in "Sold the car and now cycles". What follows "and now" tells a
    further state, so it limits nothing that the leading statement says.
    """
    words = text.split()
    for at in range(1, len(words)):
        if words[at].lower() in list_words("next_state_conjunctions") and _tells_state(words[at + 1 :]):
            return " ".join(words[:at]).rstrip(",;")
    return None


def _tells_state(words: Sequence[str]) -> bool:
    """Return whether words tell the present state: "now cycles", "eats meat again", "his boss is Ann now"."""
    if not words:
        return False
    if words[0].lower() in list_words("next_state_adverbs"):
        return True
    said = parse_fact(" ".join(words))
    is_present = said.is_resumed or said.has_word_of("now")
    return is_present and bool(said.words) and (said.is_copular or begins_with_verb(said.words))
