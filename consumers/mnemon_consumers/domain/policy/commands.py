"""Detection of commands to a program or a model, in English and Russian."""

import re
from typing import Final

from mnemon_consumers.domain.policy.wording import compile_pattern

_LINE: Final = compile_pattern(
    r"""(?:[$%>]\s+)?(?:sudo\s+)?(?:
    (?:npm|pnpm|yarn|bun)\s+(?:install|i|ci|add|remove|uninstall|run|start|test|init|update|publish|exec|build|dev)\b|
    npx\s+\S+|
    (?:pip3?|pipx|uv|poetry|conda)\s+
    (?:install|uninstall|add|remove|run|sync|freeze|list|show|update|pip|create|activate|tool)\b|
    (?:apt|apt-get|brew|yum|dnf|pacman|snap)\s+(?:install|update|upgrade|remove|search|autoremove|-S\w*)\b|
    git\s+(?:add|am|branch|checkout|cherry-pick|clone|commit|config|diff|fetch|init|log|merge|mv|pull|push|rebase|
    remote|reset|restore|revert|rm|show|stash|status|submodule|switch|tag)\b|
    (?:docker|podman)(?:\s+|-)(?:build|compose|exec|images|info|kill|login|logs|network|ps|pull|push|restart|rm|rmi|
    run|start|stop|system|volume)\b|
    (?:kubectl|helm)\s+(?:apply|create|delete|describe|edit|exec|get|install|logs|rollout|scale|set|upgrade)\b|
    (?:cargo|go|dotnet|mvn|gradle)\s+(?:build|run|test|install|get|mod|add|new|publish|clean|package)\b|
    (?:systemctl|service|journalctl)\s+(?:start|stop|restart|status|enable|disable|reload|-\w)|
    (?:python3?|node|ruby|perl|bash|sh|zsh|java|deno)\s+(?:-\w|\S+\.(?:py|js|mjs|ts|rb|pl|sh|jar)\b|\S*/\S)|
    make\s+(?:-\w|(?:install|build|test|clean|all|run|check|deploy)(?=$|\s+(?:&&|[a-z]+$)))|
    (?:curl|wget|http)\s+(?:-|https?:|\S+\.\w|localhost)|
    (?:cd|ls|cat|less|tail|head|touch|mkdir|rmdir|rm|cp|mv|ln|chmod|chown|find|grep|sed|awk|tar|unzip|vim|nano|source)
    \s+(?:-{1,2}\w|['\"]?(?:\S*[/~*\\]\S*|\.\S*|\S+\.\w{1,5})(?:\s|$)|\S+$|\S+\s*(?:&&|\|))|
    (?:ssh|scp|rsync)\s+(?:-|\S+@|\S+:)|
    (?:export|set)\s+[A-Z_]{2,}=|kill\s+-?\d|killall\s+\S|echo\s+[\"'$]|psql\s+-|chmod\s+[\dugoa]*[\d+]|
    (?:drop|truncate|alter|create)\s+(?:table|database|schema|index)\s+\w|
    select\s+(?:\*|\w+(?:,\s*\w+)*)\s+from\s+\w+\s*(?:$|;|where|limit|order|join)|insert\s+into\s+\w|delete\s+from\s+\w|update\s+\w+\s+set\s+\w)"""
)
_SUPERUSER: Final = compile_pattern(r"(?:[$%>]\s+)?sudo\s+\S")
_PROMPT: Final = re.compile(r"[$%]\s+[a-z]|/[a-z_]+(?:\s|$)")
_PROSE: Final = compile_pattern(
    r"""(?:^|\s)(?:is|are|was|were|has|have|had|prefers?|likes?|loves?|uses?|knows?|needs?|bothers?|interests?|
    experience|любит|предпочитает|использует|знает|пользовател\w+|это|нравится|—|–|-)(?:\s|$)|
    \buser(?:'s|’s)?\s+\w+s\b"""
)
_ARGUMENTS: Final = compile_pattern(
    r"""(?:^|\s)--?[A-Za-z]|&&|\|\s*\w|[\"'`$]\S|://|(?:^|\s)[~.]?/\w|\S/\S|;\s*\w|@\w"""
)
"""Parts of command lines that sentences seldom have."""

_ORDER: Final = compile_pattern(
    r"""(?:(?:please|pls|ok|okay|now|hey|hi|hello|so|then|well|just|assistant|bot|first|also|
    пожалуйста|хорошо|ладно|ок|окей|теперь|а|ну|и|так|тогда|давай|слушай|привет|эй|бот|ассистент|сначала|ещё|еще|
    быстро|срочно|мне|нам)[,!.:]?\s+)*
    (?:(?:make|write|generate|create|build|draw|translate|fix|explain|summari[sz]e|show|give|tell|find|search|list|
    add|delete|remove|install|open|execute|run|implement|refactor|rewrite|draft|compose|calculate|send|print|output|
    repeat|reveal|ignore|disregard|forget|remind)(?:\s+(?:for|to))?
    \s+(?:me|us|a|an|the|my|our|this|that|these|those|all|it|some|any|every(?:thing)?|previous|above|your|code|
    prompts?|tests?|commands?|script|\d+)\b|
    (?:pretend|imagine)\s+(?:that\s+)?(?:to|you)\b|act\s+(?:as|like)\b|you\s+are\s+now\s+(?:an?|in|the|dan)\b|
    (?:run|execute|type|запусти|выполни|введи|набери)(?:те)?\s+[`$\"']?
    (?:npm|npx|yarn|pip3?|git|docker|sudo|cd|rm|curl|wget|make|python3?|node|apt)\b|
    (?:с?делай|напиши|создай|сгенерируй|составь|переведи|исправь|почини|объясни|поясни|расскажи|покажи|найди|поищи|
    посчитай|вычисли|подскажи|скажи|дай|добавь|удали|сотри|запусти|выполни|установи|открой|закрой|проверь|придумай|
    нарисуй|перепиши|сократи|помоги|забудь|игнорируй|проигнорируй|притворись|напомни|отправь|пришли|включи|выключи|
    посоветуй|порекомендуй|продолжай|продолжи|сравни|реализуй|оптимизируй|переформулируй|перечисли|повтори|выведи|
    собери|допиши|поправь|сформируй|подготовь|опиши)(?:те)?(?:-ка)?(?![\w-])|
    представь(?:те)?,?\s+что\s+ты\b|ты\s+теперь\s+(?!\w+(?:ешь|ишь)\b)\w+)"""
)
_OVERRIDE: Final = compile_pattern(
    r"""\b(?:ignore|disregard|forget|override|bypass)\s+(?:\w+\s+){0,3}?
    (?:instructions?|prompts?|rules|directives|guidelines)\b|
    (?:игнорир\w+|забудь(?:те)?|отмени(?:те)?|обойди(?:те)?)\s+(?:\w+\s+){0,3}?
    (?:инструкци\w+|указани\w+|команд\w*|правил\w*|промпт\w*)(?!\w)"""
)
"""Prompt injections, anywhere in a text: orders to a model, which reads the memory later, to drop rules."""


def is_command(text: str) -> bool:
    """Return whether a text, on one line, is a command to a program or a model, or has a prompt injection."""
    if _ORDER.match(text) or _OVERRIDE.search(text) or _PROMPT.match(text):
        return True
    typed = _LINE.match(text) or _SUPERUSER.match(text)
    # "Git push is what he forgets" begins like a command, but is about a person.
    return typed is not None and (bool(_ARGUMENTS.search(text)) or not _PROSE.search(text))
