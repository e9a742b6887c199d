"""The four formats of a context, in each language."""

import re
from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Final

from mnemon_consumers.domain.policy.wording import join_lines
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
from mnemon_consumers.retrieve.context.layout import ContextLayout, Frame, MessageLayout, TextLayout
from mnemon_consumers.retrieve.context.text import format_value, indent_lines
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

_LISTED_FACT: Final = "- {text}"
_TYPED_FACT: Final = "- [{kind}] {text}"

_HEADING = re.compile(r"^(\s*)#", re.MULTILINE)


def _format_fact(fact: ContextFact, wording: Wording) -> str:
    until = f" ({wording.until} {fact.expires_at:%Y-%m-%d})" if fact.expires_at else ""
    return join_lines(fact.text) + until


def _format_message(message: ContextMessage, wording: Wording) -> str:
    speaker = wording.roles[message.role] + (f" ({join_lines(message.name)})" if message.name else "")
    return f"{speaker}: {indent_lines(message.text)}"


def _format_field(field: DataField, wording: Wording) -> str:
    return f"- {join_lines(field.name)}: {join_lines(format_value(field.value, wording))}"


def _format_passage(passage: Passage) -> str:
    source = f" ({join_lines(passage.source)})" if passage.source else ""
    return f"- {join_lines(passage.name)}{source}: {join_lines(passage.text)}"


def _format_item(wording: Wording, fact_line: str, item: Item) -> str:
    match item:
        case ContextFact():
            return fact_line.format(kind=item.kind, text=_format_fact(item, wording))
        case ContextMessage():
            return _format_message(item, wording)
        case DataField():
            return _format_field(item, wording)
        case Passage():
            return _format_passage(item)
        case ContextSummary() | CurrentTime():
            return join_lines(item.text)


def _format_xml_item(wording: Wording, fact_line: str, item: Item) -> str:
    return _NOT_IN_XML.sub("\ufffd", _format_item(wording, fact_line, item)).translate(_XML_ENTITIES)


def _format_block_item(wording: Wording, fact_line: str, item: Item) -> str:
    line = _format_item(wording, fact_line, item)
    return _BLOCK_TITLE.sub(r"(\1)", f"- {line}" if isinstance(item, ContextSummary) else line)


def _format_markdown_item(wording: Wording, item: Item) -> str:
    line = _format_item(wording, _TYPED_FACT, item)
    match item:
        case ContextMessage():
            return _HEADING.sub(r"\1\\#", f"- {line}")
        case ContextSummary() | CurrentTime():
            return f"- {line}"
    return line


def _frame_text(around: Frame, text: str) -> str:
    return around.opening + text + around.closing


def _frame_element(name: str) -> Frame:
    return Frame(f"<{name}>\n", f"\n</{name}>")


def _frame_heading(title: str) -> Frame:
    return Frame(f"## {title}\n\n")


def _build_message_layout(wording: Wording, *, is_typed: bool) -> MessageLayout:
    parted = ":\n" if is_typed else ": "
    return MessageLayout(
        {
            # The sections that change least come first, because providers cache the prefix of a prompt.
            "facts": Frame(f"{wording.key_facts}{parted}"),
            "summaries": Frame(f"{wording.previous_summary}: "),
            "user_data": Frame(f"{wording.user_data}:\n"),
            "working": Frame(f"{wording.working}{parted}"),
            "recent": Frame(""),
            "relevant": Frame(f"{wording.relevant}{parted}"),
            "documents": Frame(f"{wording.documents}:\n"),
            "conversation": Frame(f"{wording.earlier_conversation}: "),
        },
        partial(_format_item, wording, _TYPED_FACT if is_typed else "{text}"),
        current_time=Frame(f"{wording.current_time}: "),
        tool_result=f"{wording.tool_result}: ",
        missing=_frame_text(Frame(f"{wording.key_facts}{parted}"), wording.nothing_saved)
        if is_typed
        else None,
    )


def _build_xml_layout(wording: Wording, *, is_typed: bool) -> TextLayout:
    return TextLayout(
        {
            "facts": _frame_element("key_facts"),
            "user_data": _frame_element("user_data"),
            "working": _frame_element("working_memory"),
            "summaries": _frame_element("history_summary"),
            "recent": _frame_element("recent_messages"),
            "relevant": _frame_element("relevant_memory"),
            "documents": _frame_element("relevant_documents"),
            "conversation": _frame_element("relevant_messages"),
        },
        partial(_format_xml_item, wording, _TYPED_FACT if is_typed else _LISTED_FACT),
        current_time=_frame_element("current_time"),
        missing=_frame_text(_frame_element("key_facts"), wording.nothing_saved) if is_typed else None,
    )


def _build_block_layout(wording: Wording, *, is_typed: bool) -> TextLayout:
    return TextLayout(
        {section: Frame(f"[{title}]\n") for section, title in _BLOCKS.items()},
        partial(_format_block_item, wording, _TYPED_FACT if is_typed else _LISTED_FACT),
        current_time=Frame(f"[{_TIME_BLOCK}]\n"),
        missing=_frame_text(Frame(f"[{_BLOCKS['facts']}]\n"), wording.nothing_saved) if is_typed else None,
    )


def _build_markdown_layout(wording: Wording, *, is_typed: bool) -> TextLayout:
    return TextLayout(
        {
            "facts": _frame_heading(wording.key_facts),
            "working": _frame_heading(wording.working),
            "relevant": _frame_heading(wording.relevant),
            "documents": _frame_heading(wording.documents),
            "user_data": _frame_heading(wording.user_data),
            "summaries": _frame_heading(wording.summary),
            "conversation": _frame_heading(wording.earlier_messages),
            "recent": _frame_heading(wording.recent_messages),
        },
        partial(_format_markdown_item, wording),
        current_time=_frame_heading(wording.current_time),
        missing=(
            _frame_text(_frame_heading(wording.key_facts), wording.nothing_saved)
            if is_typed
            else wording.nothing_saved
        ),
    )


def _build_layouts(wording: Wording, *, is_typed: bool) -> Mapping[Format, ContextLayout]:
    return MappingProxyType(
        {
            "messages": _build_message_layout(wording, is_typed=is_typed),
            "xml": _build_xml_layout(wording, is_typed=is_typed),
            "blocks": _build_block_layout(wording, is_typed=is_typed),
            "markdown": _build_markdown_layout(wording, is_typed=is_typed),
        }
    )


LAYOUTS_BY_LANGUAGE: Final[Mapping[ContextLanguage, Mapping[Format, ContextLayout]]] = MappingProxyType(
    {language: _build_layouts(wording, is_typed=False) for language, wording in WORDINGS.items()}
)
TYPED_LAYOUTS: Final[Mapping[ContextLanguage, Mapping[Format, ContextLayout]]] = MappingProxyType(
    {language: _build_layouts(wording, is_typed=True) for language, wording in WORDINGS.items()}
)
"""Layouts that show the kind of each fact, and a sentence if nothing is known, in every format."""
