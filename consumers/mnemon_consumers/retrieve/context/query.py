"""Query with which a turn searches memory."""

from collections.abc import Sequence

from mnemon_consumers.domain.policy.wording import join_lines

LONGEST_QUERY = 1200
"""Maximum number of characters of the whole query."""

LONGEST_RESULT = 240
"""Maximum number of characters of one tool's result; the beginning of a result tells the topic."""


def build_query(query: str | None, last_user_message: str | None, task_results: Sequence[str]) -> str | None:
    """Return the query, or else the user's last message, followed by the newest results of the current task.

    The newest result comes first; `task_results` has the oldest first. Results take at most half of the
    maximum length, plus the room that the query or the last message leaves in the other half. Return None if
    there is no text.
    """
    asked = join_lines(query or "") or join_lines(last_user_message or "")
    results: list[str] = []
    room = LONGEST_QUERY - min(len(asked), LONGEST_QUERY // 2)
    for result in reversed(task_results):
        beginning = join_lines(result[: LONGEST_RESULT * 4])[:LONGEST_RESULT].rstrip()
        if not beginning or beginning in results:
            continue
        if len(beginning) >= room:
            break
        results.append(beginning)
        room -= len(beginning) + 1
    taken = sum(len(result) + 1 for result in results)
    return " ".join(filter(None, (asked[: LONGEST_QUERY - taken], *results))) or None
