"""Placement of a context in a request, so that a provider's prefix cache still serves the request.

Parts that change seldom follow the client's system prompt. All other parts go into the last message of the
user, because the cache cannot serve the part of a request that follows a change.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from mnemon_contracts.verbs.ask import ContextReplyV1

_ELEMENT: Final = re.compile(r"^<([a-z_]+)>\n(.*?)\n</\1>$", re.MULTILINE | re.DOTALL)
_STABLE: Final = frozenset({"key_facts", "user_data", "working_memory", "history_summary"})
_MESSAGES: Final = frozenset({"recent_messages", "relevant_messages"})
_MESSAGE_START: Final = re.compile(r"\n(?! )")
_TEXT_START: Final = re.compile(r"(^|: |\] )\s*$")
"""End of the part before the text of a message: nothing, or a name or a time, and white space."""

_ENTITIES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_CUT: Final = "…"
_COMPARED: Final = 40
"""Number of last characters by which a shortened message is recognised in the client's history."""

_NOTE: Final = "The user did not write this part: it comes from the memory of earlier conversations."


class PlacedContext(NamedTuple):
    """A context in two parts; each may be empty.

    Attributes:
        stable: text for the end of the system prompt.
        found: text for the beginning of the user's last message.
    """

    stable: str = ""
    found: str = ""


def split_context(reply: ContextReplyV1, history: Iterable[str]) -> PlacedContext:
    """Split a context in the format `xml` into its two parts.

    Messages of the context that are also in `history`, the texts that the client sends, are left out.
    """
    sent = [rendered for text in history if (rendered := _render_text(text))]
    stable: list[str] = []
    found: list[str] = []
    for element in _ELEMENT.finditer(reply.text or ""):
        name, content = element.groups()
        if name in _MESSAGES:
            content = _drop_sent_messages(content, sent)
        elif name == "key_facts" and "facts" not in reply.sections:
            content = ""  # the sentence that there are no facts
        if content:
            (stable if name in _STABLE else found).append(f"<{name}>\n{content}\n</{name}>")
    return PlacedContext(_frame_elements(stable), _frame_elements(found))


def _frame_elements(elements: Sequence[str]) -> str:
    return "\n".join(["<memory>", _NOTE, *elements, "</memory>"]) if elements else ""


def _drop_sent_messages(content: str, sent: Sequence[str]) -> str:
    """Return the messages of a section without those that the client sends itself."""
    return "\n".join(
        message
        for message in _MESSAGE_START.split(content)
        if not any(_is_same_message(message, text) for text in sent)
    )


def _is_same_message(shown: str, sent: str) -> bool:
    if shown.endswith(_CUT) and shown[-_COMPARED - 1 : -1] in sent:
        return True
    # A message is shown with the white space around its text, which clients strip from answers.
    shown = shown.rstrip()
    before = shown.removesuffix(sent)
    return before != shown and _TEXT_START.search(before) is not None


def _render_text(text: str) -> str:
    """Return a text as the format `xml` writes it: with entities, all lines but the first indented."""
    return "\n  ".join(text.strip().translate(_ENTITIES).splitlines())
