"""What vector search is asked for a turn."""

from collections.abc import Sequence

from mnemon_consumers.retrieve.context.text import folded

LONGEST_QUERY = 1200
"""Characters of the whole."""

LONGEST_RESULT = 240
"""Characters of one tool's result: its beginning says what it is about."""


def query_of(query: str | None, last_user_message: str | None, task_results: Sequence[str]) -> str | None:
    """The query, else what the user said last, with the results of the current task, newest first.

    What the user asks goes before what tools answered: results take at most half, and the place it leaves.
    """
    asked = folded(query or "") or folded(last_user_message or "")
    results: list[str] = []
    room = LONGEST_QUERY - min(len(asked), LONGEST_QUERY // 2)
    for result in reversed(task_results):
        beginning = folded(result[: LONGEST_RESULT * 4])[:LONGEST_RESULT].rstrip()
        if not beginning or beginning in results:
            continue
        if len(beginning) >= room:
            break
        results.append(beginning)
        room -= len(beginning) + 1
    taken = sum(len(result) + 1 for result in results)
    return " ".join(filter(None, (asked[: LONGEST_QUERY - taken], *results))) or None
