"""Layouts of the formats: the form of items, the text around items, and the cost in tokens."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple, TypeAlias

from mnemon_consumers.domain.policy.wording import join_lines
from mnemon_consumers.retrieve.context.contents import Context, ContextMessage, Item, SectionKind
from mnemon_contracts.events.chat import Role
from mnemon_contracts.verbs.ask import RenderedMessage

Count: TypeAlias = Callable[[str], int]
"""Function that counts the tokens of a text."""

PER_MESSAGE = 4
"""Tokens of a message besides its content: a chat template marks the role and both ends."""


_NAME: Final = re.compile("[A-Za-z0-9_-]{1,64}")


class Rendered(NamedTuple):
    """A context in the form that a model is given.

    Attributes:
        messages: the messages, in order. If the format is a text, the text is one system message; no message
            if the text is empty.
        text: the whole text; None if the format is a list of messages.
    """

    messages: tuple[RenderedMessage, ...]
    text: str | None = None


class _WrittenMessage(NamedTuple):
    """A message before its validation as a `RenderedMessage`, which takes longer than counting its tokens."""

    role: Role
    content: str
    name: str | None = None


class Frame(NamedTuple):
    """Text before and after the lines of a section."""

    opening: str
    closing: str = ""


@dataclass(frozen=True, slots=True)
class TextLayout:
    """Layout of a single text, section after section.

    Attributes:
        sections: frames of the sections, in the order of the text.
        line: function that writes an item so that its content cannot break out of the frame.
        current_time: frame of the current date and time, at the end of the text.
        missing: sentence that begins the text if the context is complete and has no items but messages.
    """

    sections: Mapping[SectionKind, Frame]
    line: Callable[[Item], str]
    current_time: Frame
    missing: str | None = None

    nothing: ClassVar = Rendered((), "")

    def render(self, context: Context) -> Rendered:
        """Return a context in the form that is given to a model."""
        shown = [
            self._render_section(section, items)
            for section in self.sections
            if (items := context.get_section(section))
        ]
        if self.missing and not _has_memory(context):
            shown.insert(0, self.missing)
        if context.current_time:
            opening, closing = self.current_time
            # The time comes last, so that the prefix stays the same from one minute to the next.
            shown.append(opening + self.line(context.current_time) + closing)
        text = "\n\n".join(shown)
        return Rendered((RenderedMessage(role="system", content=text),) if text else (), text)

    def count_tokens(self, rendered: Rendered, count: Count) -> int:
        """Return the number of tokens of a rendered context."""
        return count(rendered.text) if rendered.text else 0

    def count_section_tokens(self, section: SectionKind, items: Sequence[Item], count: Count) -> int:
        """Return the number of tokens of a section that has these items; 0 without items."""
        # The tokens include the blank line before the next section.
        return count(f"{self._render_section(section, items)}\n\n") if items else 0

    def count_frame_tokens(self, section: SectionKind, count: Count) -> int:
        """Return the number of tokens of a section besides its items."""
        return count(f"{self._render_section(section, ())}\n\n")

    def count_item_tokens(self, section: SectionKind, item: Item, count: Count) -> int:
        """Return the number of tokens that an item adds to its section."""
        return count(f"{self.line(item)}\n")

    def _render_section(self, section: SectionKind, items: Sequence[Item]) -> str:
        around = self.sections[section]
        return around.opening + "\n".join(map(self.line, items)) + around.closing


@dataclass(frozen=True, slots=True)
class MessageLayout:
    """Layout with one message for each section, and recent messages with their own roles.

    Attributes:
        sections: frames of the sections, in the order of the messages.
        line: function that writes an item that is not a message of its own.
        current_time: frame of the current date and time, in the last message.
        tool_result: text before the result of a tool.
        missing: first message if the context is complete and has no items but messages.
    """

    sections: Mapping[SectionKind, Frame]
    line: Callable[[Item], str]
    current_time: Frame
    tool_result: str
    missing: str | None = None

    nothing: ClassVar = Rendered(())

    def render(self, context: Context) -> Rendered:
        messages = [
            RenderedMessage(role=role, content=content, name=name)
            for section in self.sections
            for role, content, name in self._write_messages(section, context.get_section(section))
        ]
        if self.missing and not _has_memory(context):
            messages.insert(0, RenderedMessage(role="system", content=self.missing))
        if context.current_time:
            opening, closing = self.current_time
            content = opening + self.line(context.current_time) + closing
            messages.append(RenderedMessage(role="system", content=content))
        return Rendered(tuple(messages))

    def count_tokens(self, rendered: Rendered, count: Count) -> int:
        return sum(
            _count_message_tokens(message.content, message.name, count) for message in rendered.messages
        )

    def count_section_tokens(self, section: SectionKind, items: Sequence[Item], count: Count) -> int:
        return sum(
            _count_message_tokens(content, name, count)
            for _, content, name in self._write_messages(section, items)
        )

    def count_frame_tokens(self, section: SectionKind, count: Count) -> int:
        return 0 if section == "recent" else PER_MESSAGE + count(self.sections[section].opening)

    def count_item_tokens(self, section: SectionKind, item: Item, count: Count) -> int:
        if section == "recent":
            return self.count_section_tokens(section, (item,), count)
        return count(f"{self.line(item)}\n")

    def _write_messages(self, section: SectionKind, items: Sequence[Item]) -> Iterator[_WrittenMessage]:
        if section == "recent":
            for item in items:
                if isinstance(item, ContextMessage):
                    yield self._write_message(item)
        elif items:
            lines = "\n".join(map(self.line, items))
            yield _WrittenMessage("system", self.sections[section].opening + lines)

    def _write_message(self, message: ContextMessage) -> _WrittenMessage:
        """Return a message in a form that all providers accept.

        A tool's result becomes a system message, because providers require its call before it. A name moves
        into the text if it is longer than 64 characters, or has characters other than ASCII letters, digits,
        `_` and `-`.
        """
        role, text, name = message.role, message.text, message.name
        if role == "tool":
            role, text = "system", self.tool_result + text
        if name and not _NAME.fullmatch(name):
            text = f"{join_lines(name)}: {text}"
            name = None
        return _WrittenMessage(role, text, name or None)


ContextLayout: TypeAlias = TextLayout | MessageLayout
"""Layout of one format of a context: how the context is rendered, and how many tokens its parts take.

The sum of the tokens of a section's frame and of its items may differ by a few tokens from the tokens of the
section as a whole, which `count_section_tokens` returns. `nothing` is the rendered form if nothing fits.
"""


def _has_memory(context: Context) -> bool:
    return (
        context.trimmed
        or context.incomplete
        or any((context.facts, context.working, context.relevant, context.user_data, context.summaries))
        or bool(context.documents)
    )


def _count_message_tokens(content: str, name: str | None, count: Count) -> int:
    return PER_MESSAGE + count(content) + (count(name) if name else 0)
