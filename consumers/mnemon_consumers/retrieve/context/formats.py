"""The four formats of a context, in each language."""

import re
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from mnemon_consumers.retrieve.context.contents import (
    ContextFact,
    ContextMessage,
    ContextSummary,
    CurrentTime,
    DataField,
    Item,
    Passage,
    SectionKind,
)
from mnemon_consumers.retrieve.context.layout import Around, ContextLayout, MessageLayout, TextLayout
from mnemon_consumers.retrieve.context.text import folded, indented, plain
from mnemon_consumers.retrieve.context.wording import WORDINGS, ContextLanguage, Wording
from mnemon_contracts.verbs.ask import Format

_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_XML_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})

_BLOCKS: Final[Mapping[SectionKind, str]] = {
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


def _fact(fact: ContextFact, wording: Wording) -> str:
    until = f" ({wording.until} {fact.expires_at:%Y-%m-%d})" if fact.expires_at else ""
    return folded(fact.text) + until


def _said(said: ContextMessage, wording: Wording) -> str:
    speaker = wording.roles[said.role] + (f" ({folded(said.name)})" if said.name else "")
    return f"{speaker}: {indented(said.text)}"


def _data(field: DataField, wording: Wording) -> str:
    return f"- {folded(field.name)}: {folded(plain(field.value, wording))}"


def _passage(passage: Passage) -> str:
    source = f" ({folded(passage.source)})" if passage.source else ""
    return f"- {folded(passage.name)}{source}: {folded(passage.text)}"


def _in_message(wording: Wording, item: Item) -> str:
    match item:
        case ContextFact():
            return _fact(item, wording)
        case ContextMessage():
            return _said(item, wording)
        case DataField():
            return _data(item, wording)
        case Passage():
            return _passage(item)
        case ContextSummary() | CurrentTime():
            return folded(item.text)


def _in_typed_message(wording: Wording, item: Item) -> str:
    return _listed(item, _in_message(wording, item), is_typed=True)


def _listed(item: Item, line: str, *, is_typed: bool) -> str:
    """Return a fact as a line of a list, optionally with its kind: `- [preference] Likes tea`."""
    if not isinstance(item, ContextFact):
        return line
    return f"- [{item.kind}] {line}" if is_typed else f"- {line}"


def _in_xml(wording: Wording, is_typed: bool, item: Item) -> str:
    line = _listed(item, _in_message(wording, item), is_typed=is_typed)
    return _NOT_IN_XML.sub("\ufffd", line).translate(_XML_ENTITIES)


def _in_blocks(wording: Wording, is_typed: bool, item: Item) -> str:
    line = _listed(item, _in_message(wording, item), is_typed=is_typed)
    return _BLOCK_TITLE.sub(r"(\1)", f"- {line}" if isinstance(item, ContextSummary) else line)


def _in_markdown(wording: Wording, item: Item) -> str:
    line = _in_message(wording, item)
    match item:
        case ContextFact():
            return _listed(item, line, is_typed=True)
        case ContextMessage():
            return _HEADING.sub(r"\1\\#", f"- {line}")
        case ContextSummary() | CurrentTime():
            return f"- {line}"
    return line


def _framed(around: Around, text: str) -> str:
    return around.opening + text + around.closing


def _element(name: str) -> Around:
    return Around(f"<{name}>\n", f"\n</{name}>")


def _heading(title: str) -> Around:
    return Around(f"## {title}\n\n")


def _messages(wording: Wording, *, is_typed: bool) -> MessageLayout:
    parted = ":\n" if is_typed else ": "
    return MessageLayout(
        {
            # The sections that change least come first, because providers cache the prefix of a prompt.
            "facts": Around(f"{wording.key_facts}{parted}"),
            "summaries": Around(f"{wording.previous_summary}: "),
            "user_data": Around(f"{wording.user_data}:\n"),
            "working": Around(f"{wording.working}{parted}"),
            "recent": Around(""),
            "relevant": Around(f"{wording.relevant}{parted}"),
            "documents": Around(f"{wording.documents}:\n"),
            "conversation": Around(f"{wording.earlier_conversation}: "),
        },
        partial(_in_typed_message if is_typed else _in_message, wording),
        current_time=Around(f"{wording.current_time}: "),
        tool_result=f"{wording.tool_result}: ",
        missing=_framed(Around(f"{wording.key_facts}{parted}"), wording.nothing_saved) if is_typed else None,
    )


def _xml(wording: Wording, *, is_typed: bool) -> TextLayout:
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
        partial(_in_xml, wording, is_typed),
        current_time=_element("current_time"),
        missing=_framed(_element("key_facts"), wording.nothing_saved) if is_typed else None,
    )


def _blocks(wording: Wording, *, is_typed: bool) -> TextLayout:
    return TextLayout(
        {section: Around(f"[{title}]\n") for section, title in _BLOCKS.items()},
        partial(_in_blocks, wording, is_typed),
        current_time=Around(f"[{_TIME_BLOCK}]\n"),
        missing=_framed(Around(f"[{_BLOCKS['facts']}]\n"), wording.nothing_saved) if is_typed else None,
    )


def _markdown(wording: Wording, *, is_typed: bool) -> TextLayout:
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
        missing=(
            _framed(_heading(wording.key_facts), wording.nothing_saved) if is_typed else wording.nothing_saved
        ),
    )


def _layouts(wording: Wording, *, is_typed: bool) -> Mapping[Format, ContextLayout]:
    return MappingProxyType(
        {
            "messages": _messages(wording, is_typed=is_typed),
            "xml": _xml(wording, is_typed=is_typed),
            "blocks": _blocks(wording, is_typed=is_typed),
            "markdown": _markdown(wording, is_typed=is_typed),
        }
    )


LAYOUTS_BY_LANGUAGE: Final[Mapping[ContextLanguage, Mapping[Format, ContextLayout]]] = MappingProxyType(
    {language: _layouts(wording, is_typed=False) for language, wording in WORDINGS.items()}
)
TYPED_LAYOUTS: Final[Mapping[ContextLanguage, Mapping[Format, ContextLayout]]] = MappingProxyType(
    {language: _layouts(wording, is_typed=True) for language, wording in WORDINGS.items()}
)
"""Layouts that show the kind of each fact, and a sentence if nothing is known, in every format."""

LAYOUTS: Final = LAYOUTS_BY_LANGUAGE["en"]
MESSAGES: Final = LAYOUTS["messages"]
XML: Final = LAYOUTS["xml"]
BLOCKS: Final = LAYOUTS["blocks"]
MARKDOWN: Final = LAYOUTS["markdown"]
