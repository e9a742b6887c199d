"""Selection of the messages that may hold new facts: memory that a bot repeats is not read again.

No I/O, no clock.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from mnemon_contracts.events.chat import FROM_MEMORY, Role
from mnemon_contracts.function_tools import TOOLS
from mnemon_infra.database.messages.uncovered_messages import MessageOutline

_READ_ROLES: Final = "user", "assistant"

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
"""Pattern of the fixed text of a context, in every format and language, and of a fact's line. A test renders
every format."""


def is_worth_reading(
    role: Role, content: str, metadata: Mapping[str, Any] | None = None, name: str | None = None
) -> bool:
    """Return whether a message may hold new facts.

    Such a message is from a user or an assistant, has a letter, and is not from memory (`is_from_memory`).
    """
    return (
        role in _READ_ROLES
        and any(character.isalpha() for character in content)
        and not is_from_memory(content, metadata, name)
    )


def may_be_worth_reading(message: MessageOutline) -> bool:
    """Return whether a message is worth reading, as far as its beginning shows.

    Letters may follow the beginning of a long message. So may a context of memory: the request for the window
    leaves such a message out, because it is built from the whole content.
    """
    text = message.beginning
    has_words = not message.is_whole or any(character.isalpha() for character in text)
    is_excluded = message.is_from_memory or is_from_memory(text, name=message.name)
    return message.role in _READ_ROLES and has_words and not is_excluded


def is_from_memory(content: str, metadata: Mapping[str, Any] | None = None, name: str | None = None) -> bool:
    """Return whether a message is marked as memory, holds a context, or is the result of a memory tool."""
    if metadata and metadata.get(FROM_MEMORY) is True:
        return True
    return name in TOOLS or _RENDERED.search(content) is not None
