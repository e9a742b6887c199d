"""The four formats of a context, in each language."""

import re
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from consumers.retrieve.context.layout import Around, Layout, MessageLayout, TextLayout
from consumers.retrieve.context.text import folded, indented, plain
from consumers.retrieve.context.value import (
    CurrentTime,
    DataField,
    Fact,
    Item,
    Passage,
    Said,
    Section,
    Summary,
)
from consumers.retrieve.context.wording import WORDINGS, Language, Wording
from contracts.ask import Format

_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_XML_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})

_BLOCKS: Final[Mapping[Section, str]] = {
    "facts": "PROFILE MEMORY",
    "working": "WORKING MEMORY",
    "relevant": "RELEVANT MEMORY FOR THIS TURN",
    "documents": "RELEVANT DOCUMENTS",
    "user_data": "USER DATA",
    "summaries": "CONVERSATION SUMMARY",
    "conversation": "EARLIER MESSAGES",
    "recent": "RECENT MESSAGES",
}
_TIME_BLOCK: Final = "CURRENT TIME"
_BLOCK_TITLE = re.compile(
    r"\[(\s*(?:{})\s*)\]".format(
        "|".join(title.replace(" ", r"\s+") for title in (*_BLOCKS.values(), _TIME_BLOCK))
    ),
    re.IGNORECASE,
)

_HEADING = re.compile(r"^(\s*)#", re.MULTILINE)


def _fact(fact: Fact, wording: Wording) -> str:
    until = f" ({wording.until} {fact.expires_at:%Y-%m-%d})" if fact.expires_at else ""
    return folded(fact.text) + until


def _said(said: Said, wording: Wording) -> str:
    speaker = wording.roles[said.role] + (f" ({folded(said.name)})" if said.name else "")
    return f"{speaker}: {indented(said.text)}"


def _data(field: DataField, wording: Wording) -> str:
    return f"- {folded(field.name)}: {folded(plain(field.value, wording))}"


def _passage(passage: Passage) -> str:
    source = f" ({folded(passage.source)})" if passage.source else ""
    return f"- {folded(passage.name)}{source}: {folded(passage.text)}"


def _in_message(wording: Wording, item: Item) -> str:
    match item:
        case Fact():
            return _fact(item, wording)
        case Said():
            return _said(item, wording)
        case DataField():
            return _data(item, wording)
        case Passage():
            return _passage(item)
        case Summary() | CurrentTime():
            return folded(item.text)


def _in_xml(wording: Wording, item: Item) -> str:
    line = _in_message(wording, item)
    if isinstance(item, Fact):
        line = f"- {line}"
    return _NOT_IN_XML.sub("\ufffd", line).translate(_XML_ENTITIES)


def _in_blocks(wording: Wording, item: Item) -> str:
    line = _in_message(wording, item)
    return _BLOCK_TITLE.sub(r"(\1)", f"- {line}" if isinstance(item, Fact | Summary) else line)


def _in_markdown(wording: Wording, item: Item) -> str:
    line = _in_message(wording, item)
    match item:
        case Fact():
            return f"- [{item.kind}] {line}"
        case Said():
            return _HEADING.sub(r"\1\\#", f"- {line}")
        case Summary() | CurrentTime():
            return f"- {line}"
    return line


def _element(name: str) -> Around:
    return Around(f"<{name}>\n", f"\n</{name}>")


def _heading(title: str) -> Around:
    return Around(f"## {title}\n\n")


def _messages(wording: Wording) -> MessageLayout:
    return MessageLayout(
        {
            # What changes least goes first: a provider caches the beginning of a prompt.
            "facts": Around(f"{wording.key_facts}: "),
            "summaries": Around(f"{wording.previous_summary}: "),
            "user_data": Around(f"{wording.user_data}:\n"),
            "working": Around(f"{wording.working}: "),
            "recent": Around(""),
            "relevant": Around(f"{wording.relevant}: "),
            "documents": Around(f"{wording.documents}:\n"),
            "conversation": Around(f"{wording.earlier_conversation}: "),
        },
        partial(_in_message, wording),
        current_time=Around(f"{wording.current_time}: "),
        tool_result=f"{wording.tool_result}: ",
    )


def _xml(wording: Wording) -> TextLayout:
    return TextLayout(
        {
            "facts": _element("key_facts"),
            "user_data": _element("user_data"),
            "working": _element("working_memory"),
            "summaries": _element("history_summary"),
            "recent": _element("recent_messages"),
            "relevant": _element("relevant_memory"),
            "documents": _element("relevant_documents"),
            "conversation": _element("relevant_messages"),
        },
        partial(_in_xml, wording),
        current_time=_element("current_time"),
    )


def _blocks(wording: Wording) -> TextLayout:
    return TextLayout(
        {section: Around(f"[{title}]\n") for section, title in _BLOCKS.items()},
        partial(_in_blocks, wording),
        current_time=Around(f"[{_TIME_BLOCK}]\n"),
    )


def _markdown(wording: Wording) -> TextLayout:
    return TextLayout(
        {
            "facts": _heading(wording.key_facts),
            "working": _heading(wording.working),
            "relevant": _heading(wording.relevant),
            "documents": _heading(wording.documents),
            "user_data": _heading(wording.user_data),
            "summaries": _heading(wording.summary),
            "conversation": _heading(wording.earlier_messages),
            "recent": _heading(wording.recent_messages),
        },
        partial(_in_markdown, wording),
        current_time=_heading(wording.current_time),
        missing=wording.nothing_saved,
    )


def _layouts(wording: Wording) -> Mapping[Format, Layout]:
    return MappingProxyType(
        {
            "messages": _messages(wording),
            "xml": _xml(wording),
            "blocks": _blocks(wording),
            "markdown": _markdown(wording),
        }
    )


LAYOUTS_BY_LANGUAGE: Final[Mapping[Language, Mapping[Format, Layout]]] = MappingProxyType(
    {language: _layouts(wording) for language, wording in WORDINGS.items()}
)

LAYOUTS: Final = LAYOUTS_BY_LANGUAGE["en"]
MESSAGES: Final = LAYOUTS["messages"]
XML: Final = LAYOUTS["xml"]
BLOCKS: Final = LAYOUTS["blocks"]
MARKDOWN: Final = LAYOUTS["markdown"]
