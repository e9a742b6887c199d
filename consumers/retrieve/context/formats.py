"""The four formats of a context."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from consumers.retrieve.context.layout import Around, Layout, MessageLayout, TextLayout
from consumers.retrieve.context.text import folded, indented, plain
from consumers.retrieve.context.value import DataField, Fact, Item, Said, Section, Summary
from contracts.ask import Format

_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_XML_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})

_BLOCKS: Final[Mapping[Section, str]] = {
    "facts": "PROFILE MEMORY",
    "working": "WORKING MEMORY",
    "relevant": "RELEVANT MEMORY FOR THIS TURN",
    "user_data": "USER DATA",
    "summaries": "CONVERSATION SUMMARY",
    "conversation": "EARLIER MESSAGES",
    "recent": "RECENT MESSAGES",
}
_BLOCK_TITLE = re.compile(
    r"\[(\s*(?:{})\s*)\]".format("|".join(title.replace(" ", r"\s+") for title in _BLOCKS.values())),
    re.IGNORECASE,
)

_HEADING = re.compile(r"^(\s*)#", re.MULTILINE)


def _fact(fact: Fact) -> str:
    until = f" (until {fact.expires_at:%Y-%m-%d})" if fact.expires_at else ""
    return folded(fact.text) + until


def _said(said: Said) -> str:
    speaker = said.role.capitalize() + (f" ({folded(said.name)})" if said.name else "")
    return f"{speaker}: {indented(said.text)}"


def _data(field: DataField) -> str:
    return f"- {folded(field.name)}: {folded(plain(field.value))}"


def _in_message(item: Item) -> str:
    match item:
        case Fact():
            return _fact(item)
        case Said():
            return _said(item)
        case DataField():
            return _data(item)
        case Summary():
            return folded(item.text)


def _in_xml(item: Item) -> str:
    line = f"- {_fact(item)}" if isinstance(item, Fact) else _in_message(item)
    return _NOT_IN_XML.sub("\ufffd", line).translate(_XML_ENTITIES)


def _in_blocks(item: Item) -> str:
    line = _in_message(item)
    return _BLOCK_TITLE.sub(r"(\1)", f"- {line}" if isinstance(item, Fact | Summary) else line)


def _in_markdown(item: Item) -> str:
    match item:
        case Fact():
            return f"- [{item.kind}] {_fact(item)}"
        case Said():
            return _HEADING.sub(r"\1\\#", f"- {_said(item)}")
        case DataField():
            return _data(item)
        case Summary():
            return f"- {folded(item.text)}"


def _element(name: str) -> Around:
    return Around(f"<{name}>\n", f"\n</{name}>")


MESSAGES: Final = MessageLayout(
    {
        # What changes least goes first: a provider caches the beginning of a prompt.
        "facts": Around("Key facts: "),
        "summaries": Around("Previous context summary: "),
        "user_data": Around("User data:\n"),
        "working": Around("Working memory: "),
        "recent": Around(""),
        "relevant": Around("Relevant memory: "),
        "conversation": Around("Relevant conversation memory: "),
    },
    _in_message,
)

XML: Final = TextLayout(
    {
        "facts": _element("key_facts"),
        "user_data": _element("user_data"),
        "working": _element("working_memory"),
        "summaries": _element("history_summary"),
        "recent": _element("recent_messages"),
        "relevant": _element("relevant_memory"),
        "conversation": _element("relevant_messages"),
    },
    _in_xml,
)

BLOCKS: Final = TextLayout(
    {section: Around(f"[{title}]\n") for section, title in _BLOCKS.items()}, _in_blocks
)

MARKDOWN: Final = TextLayout(
    {
        "facts": Around("## Key facts\n\n"),
        "working": Around("## Working memory\n\n"),
        "relevant": Around("## Relevant memory\n\n"),
        "user_data": Around("## User data\n\n"),
        "summaries": Around("## Summary\n\n"),
        "conversation": Around("## Earlier messages\n\n"),
        "recent": Around("## Recent messages\n\n"),
    },
    _in_markdown,
    missing="No saved information.",
)

LAYOUTS: Mapping[Format, Layout] = MappingProxyType(
    {"messages": MESSAGES, "xml": XML, "blocks": BLOCKS, "markdown": MARKDOWN}
)
