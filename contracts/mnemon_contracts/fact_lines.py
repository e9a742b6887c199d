"""Facts as lines of Markdown: `- [id:pf_001] [t:profile] [imp:high] [exp:2026-12-31] Likes tea`."""

from mnemon_contracts.verbs.tools import Importance, StoredFact


def name_importance(importance: int) -> Importance:
    """Return the word for an importance of 1 to 10, such as `high` for 8."""
    if importance >= 8:
        return "high"
    return "low" if importance <= 3 else "normal"


def format_fact_line(fact: StoredFact) -> str:
    """Return a fact as one line of Markdown; `exp` is absent from a fact that never expires."""
    marks = [f"id:{fact.id}", f"t:{fact.tier}", f"imp:{name_importance(fact.importance)}"]
    if fact.expires_at is not None:
        marks.append(f"exp:{fact.expires_at:%Y-%m-%d}")
    return f"- {' '.join(f'[{mark}]' for mark in marks)} {' '.join(fact.text.split())}"
