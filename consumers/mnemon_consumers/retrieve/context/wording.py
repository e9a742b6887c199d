"""The fixed words of a context, by language.

The XML tags and block titles in `formats.py` are the same in every language, because prompts of bots refer to
them by name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal

from mnemon_contracts.events.chat import Role

ContextLanguage = Literal["en", "ru"]


@dataclass(frozen=True, slots=True)
class Wording:
    """The fixed words in one language. Only the formats `messages` and `markdown` show the headings.

    Attributes:
        nothing_saved: the sentence for a user without any saved memory.
    """

    key_facts: str = "Key facts"
    working: str = "Working memory"
    relevant: str = "Relevant memory"
    user_data: str = "User data"
    documents: str = "Relevant documents"
    previous_summary: str = "Previous context summary"
    earlier_conversation: str = "Relevant conversation memory"
    summary: str = "Summary"
    earlier_messages: str = "Earlier messages"
    recent_messages: str = "Recent messages"
    current_time: str = "Current date and time"
    nothing_saved: str = "No saved information."
    until: str = "until"
    tools_used: str = "Tools used"
    tool_result: str = "Tool result"
    yes: str = "yes"
    no: str = "no"
    none: str = "none"
    roles: Mapping[Role, str] = field(
        default_factory=lambda: {
            "user": "User",
            "assistant": "Assistant",
            "tool": "Tool",
            "system": "System",
        }
    )


ENGLISH: Final = Wording()

RUSSIAN: Final = Wording(
    key_facts="Ключевые факты",
    working="Рабочая память",
    relevant="Воспоминания по теме",
    user_data="Данные пользователя",
    documents="Документы по теме",
    previous_summary="Краткое содержание предыдущего разговора",
    earlier_conversation="Прежние сообщения по теме",
    summary="Краткое содержание",
    earlier_messages="Прежние сообщения",
    recent_messages="Последние сообщения",
    current_time="Текущие дата и время",
    nothing_saved="Нет сохранённой информации.",
    until="до",
    tools_used="Использованы инструменты",
    tool_result="Результат инструмента",
    yes="да",
    no="нет",
    none="нет",
    roles={
        "user": "Пользователь",
        "assistant": "Ассистент",
        "tool": "Инструмент",
        "system": "Система",
    },
)

WORDINGS: Final[Mapping[ContextLanguage, Wording]] = MappingProxyType({"en": ENGLISH, "ru": RUSSIAN})
