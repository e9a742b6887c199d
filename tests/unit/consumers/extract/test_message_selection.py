"""Selection of the messages to read for facts: messages that memory itself produced are left out."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from mnemon_consumers.extract.message_selection import is_worth_reading
from mnemon_consumers.retrieve.context.contents import (
    SECTIONS,
    Context,
    ContextFact,
    ContextMessage,
    ContextSummary,
    DataField,
    Passage,
    SectionKind,
)
from mnemon_consumers.retrieve.context.formats import LAYOUTS_BY_LANGUAGE, TYPED_LAYOUTS
from mnemon_consumers.retrieve.context.layout import ContextLayout
from mnemon_consumers.retrieve.context.wording import ContextLanguage
from mnemon_contracts.fact_lines import format_fact_line
from mnemon_contracts.verbs.ask import Format
from mnemon_contracts.verbs.tools import StoredFact

NOW = datetime(2026, 11, 21, 18, 5, tzinfo=UTC)


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_words_of_the_user_and_the_assistant_are_read(role: Any) -> None:
    assert is_worth_reading(role, "Живу в Казани")
    assert is_worth_reading(role, "I live in York", {"from_memory": False, "source": "app"}, "Ann")


@pytest.mark.parametrize(
    ("role", "content", "metadata", "name"),
    [
        ("tool", "The weather is fine", None, None),
        ("system", "Answer briefly", None, None),
        ("user", "", None, None),
        ("user", " 12:30 👍 ", None, None),
        ("assistant", "You live in York", {"from_memory": True}, None),
        ("user", "You live in York", {"from_memory": True, "x": 1}, None),
        ("user", '{"facts": ["Lives in York"]}', None, "memory_search"),
        ("assistant", "- [id:pf_001] [t:profile] [imp:high] Lives in York", None, None),
    ],
)
def test_tool_output_and_text_from_memory_are_not_read(
    role: Any, content: str, metadata: dict[str, Any] | None, name: str | None
) -> None:
    assert not is_worth_reading(role, content, metadata, name)


ITEMS: dict[SectionKind, Any] = {
    "facts": ContextFact("pf_001", "Likes tea", "preference", 5, NOW),
    "working": ContextFact("wk_001", "Is in Rome", "event", 5, NOW),
    "relevant": ContextFact("ar_001", "Has a boat", "user_fact", 5, NOW),
    "summaries": ContextSummary("They spoke of tea"),
    "user_data": DataField("name", "Ann"),
    "documents": Passage("Tea is grown in Assam", "Tea", "tea.md"),
    "conversation": ContextMessage("m1", "user", "I like tea"),
    "recent": ContextMessage("m2", "user", "I like coffee"),
}


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("form", LAYOUTS_BY_LANGUAGE["en"])
@pytest.mark.parametrize("language", LAYOUTS_BY_LANGUAGE)
@pytest.mark.parametrize("before", ["", "This is what I know:\n"])
@pytest.mark.parametrize("layouts", [LAYOUTS_BY_LANGUAGE, TYPED_LAYOUTS], ids=["plain", "typed"])
def test_a_context_is_recognised_by_each_of_its_sections(
    layouts: Mapping[ContextLanguage, Mapping[Format, ContextLayout]],
    form: Format,
    language: ContextLanguage,
    section: SectionKind,
    before: str,
) -> None:
    sections: dict[str, Any] = {section: [ITEMS[section]]}
    rendered = layouts[language][form].render(Context(**sections))
    messages = [message for message in rendered.messages if message.role == "system"]
    assert messages or (form, section) == ("messages", "recent")
    if form == "messages" and before:
        return  # in this format each section is a message of its own, without text before it
    assert not any(is_worth_reading("assistant", before + message.content) for message in messages)


def test_facts_as_lines_are_recognised() -> None:
    fact = StoredFact(
        id="pf_001", text="Likes tea", kind="preference", tier="profile", importance=9, updated_at=NOW
    )
    assert not is_worth_reading("user", f"Here you are\n{format_fact_line(fact)}")


@pytest.mark.parametrize(
    "content",
    [
        "My key facts: I live in York",
        "## Plan\n\n- buy tea",
        "Мои ключевые факты: живу в Твери",
        "## План\n\n- купить чай",
        "Документы по теме: паспорт и билет",
        "I have a bad memory, relevant or not",
        "Profile memory is what I call it",
        "<b>I live in York</b>",
    ],
)
def test_text_similar_to_a_context_is_read(content: str) -> None:
    assert is_worth_reading("user", content)
