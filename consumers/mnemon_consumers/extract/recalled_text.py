"""Detects messages that came out of memory, so that no fact is learned from them again."""

import re
from collections.abc import Mapping
from typing import Any, Final

from mnemon_contracts.events.chat import FROM_MEMORY
from mnemon_contracts.verbs.function_tools import TOOLS

_RENDERED: Final = re.compile(
    r"</?(?:key_facts|user_data|working_memory|history_summary|recent_messages|relevant_memory"
    r"|relevant_messages|relevant_documents)>"
    r"|\[(?:PROFILE MEMORY|WORKING MEMORY|RELEVANT MEMORY FOR THIS TURN|USER DATA|CONVERSATION SUMMARY"
    r"|RELEVANT DOCUMENTS|EARLIER MESSAGES|RECENT MESSAGES)\]"
    r"|^## (?:Key facts|Working memory|Relevant memory|User data|Relevant documents|Summary|Earlier messages"
    r"|Recent messages)\n\n- "
    r"|^## (?:Ключевые факты|Рабочая память|Воспоминания по теме|Данные пользователя|Документы по теме"
    r"|Краткое содержание|Прежние сообщения|Последние сообщения)\n\n- "
    r"|\A(?:Key facts|Previous context summary|Working memory|Relevant memory|Relevant conversation memory)"
    r":(?: |\n- \[|\nNo saved information\.)"
    r"|\A(?:Ключевые факты|Краткое содержание предыдущего разговора|Рабочая память|Воспоминания по теме"
    r"|Прежние сообщения по теме):(?: |\n- \[|\nНет сохранённой информации\.)"
    r"|\A(?:User data|Relevant documents|Данные пользователя|Документы по теме):\n- "
    r"|\A(?:No saved information|Нет сохранённой информации)\."
    r"|\[id:(?:pf|wk|ar)_\d+\]",
    re.MULTILINE,
)
"""Fixed text of the formats of a context in each language (a test renders each of them), and facts as
lines."""


def is_from_memory(content: str, metadata: Mapping[str, Any] | None = None, name: str | None = None) -> bool:
    """Return whether a message is marked as memory, holds a context, or is the result of a memory tool."""
    if metadata and metadata.get(FROM_MEMORY) is True:
        return True
    return name in TOOLS or _RENDERED.search(content) is not None
