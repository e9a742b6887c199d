"""Check that accepts or rejects a summary by a model. No I/O, no clock, no randomness."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from mnemon_consumers.domain.policy.secrets.detection import find_secret
from mnemon_contracts.settings.groups import Policy
from mnemon_infra.models.language.port import ModelAnswer, ModelRequest

MOST_WORDS, MOST_CHARACTERS = 100, 1000
"""Maximum number of words and of characters of a summary. The second limit is for languages without spaces
between words."""

ECHOED_INSTRUCTIONS: Final = 8
ECHOED_MESSAGES: Final = 30
"""An answer is rejected as a repetition if it has this number of consecutive words of a message, or
`ECHOED_INSTRUCTIONS` consecutive words of the instructions."""

SummaryFlaw = Literal[
    "empty", "cut_off", "preamble", "fence", "json", "echo", "too_long", "no_summary", "secret"
]

_WHY: Final[Mapping[SummaryFlaw, str]] = {
    "empty": "it has no words",
    "cut_off": "it ends in the middle",
    "preamble": "it has words around the summary, such as “Here is a summary”",
    "fence": "it has a code fence or tags",
    "json": "it is JSON",
    "no_summary": "it says that there is no summary, or refuses to write one",
    "secret": "it holds a secret, such as a password",
    "echo": "it repeats the instructions or the messages",
    "too_long": f"it has more than {MOST_WORDS} words or {MOST_CHARACTERS:,} characters",
}

_THOUGHT: Final = re.compile(
    # The closing tag is missing where the model ran out of tokens while it thought.
    r"<think(?:ing)?>.*?</think(?:ing)?>|\A.*</think(?:ing)?>|\A\s*<think(?:ing)?>.*",
    re.DOTALL | re.IGNORECASE,
)
_LABEL: Final = re.compile(
    r"\A[*_#\s]*(?:summary|резюме|краткое содержание|итог)[*_\s]*:[*_\s]*", re.IGNORECASE
)
_QUOTED: Final = re.compile(r"\A(?:\"([^\"]*)\"|«([^«»]*)»|“([^“”]*)”)\Z")
_FENCE: Final = re.compile(r"```|~~~|\A\s*</?[a-z][\w-]*>", re.IGNORECASE)
_JSON: Final = re.compile(r"\A\s*(?:\{|\[\s*[\[{\"])")
_OF_TALK: Final = (
    r"(?:(?:of|for|from)\ (?:(?:the|this|our|your|these)\ )?(?:\w+\ ){0,2}"
    r"(?:conversations?|chats?|dialog(?:ue)?s?|messages?|exchanges?|discussions?|summar(?:y|ies)))?"
)
_OF_TALK_RUSSIAN: Final = (
    r"(?:(?:\w+\ ){0,2}(?:бесед\w*|разговор\w*|диалог\w*|сообщени\w*|переписк\w*|чата?|резюме))?"
)
_PREAMBLE: Final = re.compile(
    rf"""
    \A[\W_]*(?:sure|certainly|of\ course|absolutely|understood|got\ it|конечно|хорошо|разумеется
        |готово|ладно|понятно|с\ удовольствием|без\ проблем)\s*[,.!:—–-]
    |\A[\W_]*(?:okay|ok)\s*(?:[.!:—–-]|,\s*(?:so\s+|then\s+)?
        (?:here|below|the\ following|this\ is|I\b|let|sure|вот|ниже|я\b|давай|сейчас|[^.:]{{0,60}}\bsummar))
    |\A[\W_]*(?:
        here(?:['’]s|\ is|\ are|\ you\ go)\b(?=.{{0,80}}(?:summar|sentence|recap|overview|version|text|:))
        |(?:below|the\ following)\ (?:is|are)\b
        |this\ is\ (?:a|the|my|your)\ (?:\w+\ ){{0,3}}(?:summary|recap|overview)\b
        |(?:(?:a|the|my|your)\ )?(?:\w+\ ){{0,2}}summary\ ?{_OF_TALK}\W*:
        |I(?:['’]ve|\ have|\ will|['’]ll)\ (?:\w+\ )?(?:summari[sz]e|put\ together|condense)
        |as\ (?:you\ )?requested\b
        |вот\b(?=.{{0,80}}(?:содержани|резюме|сводк|саммари|пересказ|изложени|итог|обобщени|предложени|:))
        |ниже\b(?=.{{0,80}}(?:содержани|резюме|сводк|саммари|пересказ|изложени|итог|обобщени|привед))
        |(?:(?:краткое|короткое|сжатое|общее)\ )?
            (?:содержание|резюме|изложение|сводка|саммари|итоги?|пересказ)\ ?{_OF_TALK_RUSSIAN}\W*:
        |(?:я\ )?(?:кратко\ )?(?:резюмирую|подведу\ итог|обобщ(?:у|ил))
    )
    |\A[^\n]{{1,120}}:[*_\s]*\n
    """,
    re.VERBOSE | re.IGNORECASE,
)
_AFTERWORD: Final = re.compile(
    r"(?:let me know if|(?:I )?hope (?:this|that) helps|feel free to|would you like me to|"
    r"дай(?:те)? знать|надеюсь, (?:это )?помо|если (?:нужно|хотите|потребуется)[^.]*(?:дополн|подробн|измен)|"
    r"обращайтесь)[^.!?]*[.!?]*\W*\Z",
    re.IGNORECASE,
)
_HEADING: Final = re.compile(r"\A\s*#{1,6}\s+\S[^\n]*(?:\n|\Z)")
_REFUSAL: Final = re.compile(
    r"""
    \A[\W_]*(?:
        (?:(?:I['’]?m|I\ am|we['’]?re|so)\ )?(?:(?:very|really|so|truly|terribly|deeply)\ )?
            (?:sorry|afraid)\b\W+(?:(?:but|that|this|to\ say)\b\W*)*(?:\w+\ ){0,2}?
            (?:I\b|as\ an?\ (?:AI|assistant|language)|there\b|no\b|we\b|the\ (?:conversation|messages?)\b)
        |(?:I\ )?apologi(?:[sz]e|es)\b|(?:my\ )?apologies\b
        |(?:unfortunately|regrettably)\W+(?:I\b|there\ (?:is|are|was)\b|no\b|as\b|the\ (?:conversation
            |messages?)\b)
        |as\ an?\ (?:\w+\ ){0,2}(?:AI|model|assistant)\s*(?:,|I\b)
        |(?:I(?:['’]m|\ am)\ (?:just\ |only\ )?an?\ (?:\w+\ ){0,2}(?:AI|language\ model))\b
        |I\ (?:(?:really|simply|just)\ )?(?:cannot|can['’]?t|can\ not|could\ ?n['’]t|could\ not
            |won['’]?t|will\ not
            |must\ decline|decline\ to|do\ not\ have|don['’]t\ have|am\ (?:not\ able|unable)|refuse\ to)\b
        |I['’]m\ (?:not\ able|unable)\b
        |(?:there\ (?:is|was|are)\ )?(?:no|nothing|not\ enough)\ (?:\w+\ ){0,3}?
            (?:summar(?:y|ies|ise|ize)|content|messages?|conversation|information)
            (?:\ (?:is|was|are|were|to|can|could|available|provided|given|found|possible|needed
            |here)\b[^.]*)?[\W_]*\Z
        |(?:a\ |the\ )?(?:summary|conversation)\ (?:is\ )?(?:not\ available|unavailable|empty
            |not\ possible)[\W_]*\Z
        |(?:n/?a|none|null|nil|undefined|unknown|not\ applicable|empty|todo|tbd|нет|пусто|н/д
            |неизвестно)[\W_]*\Z
        |(?:извините|простите|прошу\ прощения|сожалею|приношу\ извинения|мне\ (?:очень\ )?жаль)\b
        |к\ сожалению\b\W+(?:я\b|не\b|у\ меня\b|нет\b|мне\b|как\b|невозможно\b|(?:это|этот|эту
            |данн\w+)\b|в\ (?:бесед|разговор|диалог|сообщени)\w*\ нет)
        |(?:я\W+)?(?:как|являюсь)\ (?:(?:\w+\ ){0,2}(?:ии|языков\w+\ модел\w+|нейросет\w+
            |(?:искусственн\w+\ )?интеллект)\s*(?:,|я\b))
        |я\ (?:(?:всего\ )?лишь\ |просто\ )?(?:ии|языковая\ модель|не\ (?:могу|смогу|имею|буду
            |в\ состоянии))\b
        |не\ (?:могу|удалось|получилось)\ (?:\w+\ ){0,3}(?:помочь|выполнить|обобщ|резюм|содержани|сводк
            |пересказ|составить)
        |(?:резюме|содержание|сводка|содержания|сводки|информации|сообщений)\ (?:нет|отсутству\w+
            |недоступн\w+)[\W_]*\Z
        |нет\ (?:\w+\ ){0,2}(?:резюме|содержания|сводки|информации|сообщений|данных)[^.]*[\W_]*\Z
    )
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""An answer that begins with a refusal or an apology, or says only that there is no summary or no content."""

_ECHOED_PROMPT: Final = re.compile(
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d|(?i:earlier summaries, oldest first|\A\W*messages:)|"
    r"\buser(?: \([^)]*\))?: .*\bassistant(?: \([^)]*\))?: ",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class SummaryRejection:
    """The reason why an answer is rejected as a summary."""

    reason: SummaryFlaw

    @property
    def explanation(self) -> str:
        """Return the reason in words, for a corrected request, without a quotation from the answer."""
        return _WHY[self.reason]


def check_summary(answer: ModelAnswer, request: ModelRequest) -> str | SummaryRejection:
    """Check the answer of a model to a request for a summary.

    The reasoning of the model (`<think>`), a bare label such as "Summary:" and quotation marks around the
    whole are removed. An answer with other text that the check recognises beside the summary, such as an
    introduction, is rejected. The summary is not shortened, because its end matters as much as its beginning.

    Returns:
        The summary on one line, or the reason for its rejection.
    """
    if answer.is_refused:
        return SummaryRejection("no_summary")
    text = _LABEL.sub("", _THOUGHT.sub("", answer.text).strip()).strip()
    line = " ".join(text.split())
    if quoted := _QUOTED.match(line):
        line = next(part for part in quoted.groups() if part is not None).strip()
    if reason := _find_flaw(text, line, answer, request):
        return SummaryRejection(reason)
    return line


def correct_request(request: ModelRequest, rejection: SummaryRejection) -> ModelRequest:
    """Return the request again, with the reason why its answer was rejected."""
    note = f"Your last answer was refused: {rejection.explanation}. Answer with one or two sentences only."
    return replace(request, text=f"{request.text}\n{note}\n")


def _find_flaw(text: str, line: str, answer: ModelAnswer, request: ModelRequest) -> SummaryFlaw | None:
    if not any(character.isalnum() for character in line):
        return "cut_off" if answer.is_cut else "empty"
    if _FENCE.search(text):
        return "fence"
    if _is_json(text):
        return "json"
    if _is_echo(line, request):
        return "echo"
    if _REFUSAL.search(text):
        return "no_summary"
    if _PREAMBLE.search(text) or _HEADING.search(_THOUGHT.sub("", answer.text)) or _AFTERWORD.search(text):
        return "preamble"
    if find_secret(line, Policy()) is not None:
        return "secret"
    if answer.is_cut:
        return "cut_off"
    if len(line.split()) > MOST_WORDS or len(line) > MOST_CHARACTERS:
        return "too_long"
    return None


def _is_json(text: str) -> bool:
    if _JSON.match(text):
        return True
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False


def _is_echo(line: str, request: ModelRequest) -> bool:
    if _ECHOED_PROMPT.search(line):
        return True
    said = _split_words(line)
    if _shares_run(said, _split_words(request.instructions), ECHOED_INSTRUCTIONS):
        return True
    # The newest of several earlier summaries may stay unchanged.
    messages = (each.text for each in request.messages if each.role != "system")
    return any(_shares_run(said, _split_words(text), ECHOED_MESSAGES) for text in messages)


def _shares_run(one: Sequence[str], other: Sequence[str], length: int) -> bool:
    runs = set(_list_runs(one, length))
    return bool(runs) and any(run in runs for run in _list_runs(other, length))


def _list_runs(words: Sequence[str], length: int) -> Iterator[tuple[str, ...]]:
    return (tuple(words[place : place + length]) for place in range(len(words) - length + 1))


def _split_words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
