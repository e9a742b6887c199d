"""Intent of a query: the speakers and periods that it names, and whether it asks for a time.

No I/O, no clock.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, cached_property
from typing import Final

from mnemon_consumers.domain.alignment.morphology import (
    is_cyrillic,
    is_known_word,
    is_proper_name,
    list_grammemes,
)
from mnemon_consumers.retrieve.search.query.follow_up import (
    Antecedent,
    measure_dependence,
    weigh_antecedents,
    weigh_query_terms,
)
from mnemon_consumers.retrieve.search.query.names import find_mentioned_names, is_given_name, list_other_forms
from mnemon_consumers.retrieve.search.query.periods.date_words import DateWord, WordKind, split_date_words
from mnemon_consumers.retrieve.search.query.periods.period import QueryPeriod
from mnemon_consumers.retrieve.search.query.periods.period_split import (
    PeriodSplit,
    find_periods,
    split_at_periods,
)
from mnemon_consumers.retrieve.search.query.plans import mentions_plans
from mnemon_infra.models.embedding import Sparse
from mnemon_infra.models.words import bm25, concepts

LOOKED_AT: Final = 10_000
"""Maximum number of characters of a text to read, from its beginning, so that a huge text delays no other
request.
"""

OTHER_FORM_WEIGHT: Final = 0.5
"""Weight of another form of a name, such as Katherine for "Kate", as a share of the weight of a word."""

_WORD: Final = re.compile(r"[^\W_]+")

_I: Final = """
i me my mine myself we our ours ourselves
я меня мне мной мною мой моя моё мое мои моего моей моему моим моими моих мою
мы нас нам нами наш наша наше наши нашего нашей нашему нашим нашими наших нашу
"""
_YOU: Final = """
you your yours yourself yourselves
ты тебя тебе тобой тобою твой твоя твоё твое твои твоего твоей твоему твоим твоими твоих твою
вы вас вам вами ваш ваша ваше ваши вашего вашей вашему вашим вашими ваших вашу
"""

_TIMES: Final = """
yesterday today tonight tomorrow ago since recently last next
week weeks weekend weekends month months year years
monday tuesday wednesday thursday friday saturday sunday
january february april june july august september october november december
вчера позавчера сегодня завтра послезавтра недавно назад
прошлый прошлая прошлое прошлые прошлого прошлой прошлом прошлую
следующий следующая следующее следующие следующего следующей следующем следующую
неделя недели неделю неделе месяц месяца месяце месяцев год года году лет выходные выходных
понедельник вторник среду четверг пятницу субботу воскресенье
понедельника вторника среды четверга пятницы субботы воскресенья
январь февраль март апрель май июнь июль август сентябрь октябрь ноябрь декабрь
января февраля марта апреля мая июня июля августа сентября октября ноября декабря
январе феврале марте апреле мае июне июле августе сентябре октябре ноябре декабре
"""

FIRST_PERSON: Final = frozenset(_I.split())
SECOND_PERSON: Final = frozenset(_YOU.split())
TIMES: Final = frozenset(_TIMES.split())

_GENERAL_WORDS: Final = """
happen happened happening occurred go went gone do did done be been new news up ever come came change changed
talk talked talking discuss discussed say said tell told mention mentioned chat chatted write wrote written
speak spoke spoken ask asked answer answered share shared remember remind know give list show
summarize summary recap topic topics conversation conversations message messages thing things
something anything everything event events interesting important about within throughout since every us
day morning afternoon evening night earlier will don
том было происходило произошло случилось случалось делал делала делали сделал сделала сделали нового новости
говорил говорила говорили сказал сказала сказали рассказывал рассказывала рассказывали рассказал рассказала
обсуждал обсуждала обсуждали обсудили писал писала писали написал написала разговаривали поговорили общались
беседовали болтали шла речь занимался занималась занимались делился делилась делились напомни расскажи нам
спрашивал спрашивала спросил спросила ответил ответила помнишь помнит знаешь разговор разговоры разговоре
сообщение сообщения беседа беседе беседы чат чате событие события дела интересного важного
день дня днем утром вечером ночью течение
"""
"""Words of questions about everything that was said or done, with no topic of their own."""

_BEFORE_OR_AFTER: Final = "before after until till than prior до после раньше позже к ко"
_TOPIC_PREPOSITIONS: Final = "by through по о об обо про"
_DISCUSSION_WORDS: Final = """
talk talked talking chat chatted chatting speak spoke spoken write wrote written conversation
"""

BEFORE_OR_AFTER: Final = frozenset(_BEFORE_OR_AFTER.split())
"""Words of questions about the time before or after a period."""

TOPIC_PREPOSITIONS: Final = frozenset(_TOPIC_PREPOSITIONS.split())
"""Words that make a period directly after them the topic of a question, or the end of another period."""

DISCUSSION_WORDS: Final = frozenset(_DISCUSSION_WORDS.split())
"""Words of conversation.

With one of them, "about" before a period does not make the period the topic: "What did we talk about last
week?".
"""

_AUXILIARIES: Final = frozenset(str.split("did does do has have had was were is are d s"))
"""English verbs that stand before the subject of a question; `d` and `s` as in "what's"."""

_OBJECTS: Final = frozenset(str.split("что чего чем чём кем ком кого"))
"""Russian question words that can be the object of the verb, as in «что сказала Анна» (what did Anna say)."""

RELATIVE_KINDS: Final = frozenset(
    (
        WordKind.LAST,
        WordKind.BEFORE_LAST,
        WordKind.THIS,
        WordKind.NEXT,
        WordKind.PREVIOUS,
        WordKind.PAST,
        WordKind.COMING,
        WordKind.AGO,
        WordKind.BACK,
        WordKind.NUMERAL,
        WordKind.ONE_AND_A_HALF,
        WordKind.FEW,
        WordKind.HALF,
        WordKind.HALF_YEAR,
        WordKind.NAMED_DAY,
        WordKind.RECENT,
        WordKind.RECENT_DAYS,
        WordKind.NIGHTS,
        WordKind.DAY_UNIT,
        WordKind.WEEK_UNIT,
        WordKind.FORTNIGHT,
        WordKind.MONTH_UNIT,
        WordKind.YEAR_UNIT,
        WordKind.TIME_UNIT,
        WordKind.WEEKEND,
        WordKind.WEEKENDS,
    )
)
"""Kinds of the words in relative times, such as "last", "two" and "week", without months and weekdays."""

CONJUNCTIONS: Final = frozenset(("and", "or", "и", "или"))

_WHEN: Final = re.compile(
    r"\b(?:when|how long|how often|what (?:time|date|day|week|month|year)|which (?:date|day|week|month|year)"
    r"|когда|как давно|как долго|как часто"
    r"|(?:какого|какой|каком|какую|какое) (?:числ[оа]|день|дня|дату|год\w*|месяц\w*|недел\w+|время))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class QueryIntent:
    """A query and the people and times that it names.

    A query that depends on the messages before it has their words too, and their names and periods if it
    names none itself.

    Attributes:
        text: the query.
        now: the moment to which "yesterday" is relative; without it, the query names no periods.
        preceding: the messages before the query, oldest first.
        has_relative_times: whether words of relative times, such as "last" and "week", are search terms.
    """

    text: str
    now: datetime | None = None
    preceding: tuple[str, ...] = ()
    has_relative_times: bool = True

    def remove_relative_times(self) -> "QueryIntent":
        """Return the query without the words of relative times as search terms.

        Its periods, names and concepts stay.

        A message of the period seldom names it, and one that says "last week" speaks of another week.
        """
        return replace(self, has_relative_times=False)

    @cached_property
    def dependence(self) -> float:
        """Return how far the query depends on the preceding messages, 0 to 1."""
        return measure_dependence(self.text) if self.preceding else 0.0

    @cached_property
    def antecedents(self) -> tuple[Antecedent, ...]:
        """Return the preceding messages that count, newest first; none if the query stands alone."""
        return weigh_antecedents(self.dependence, self.preceding)

    @cached_property
    def resolved_text(self) -> str:
        """Return the preceding messages that count, oldest first, then the query, one on each line."""
        return "\n".join([*(each.text for each in reversed(self.antecedents)), self._searched_text])

    @cached_property
    def periods(self) -> tuple[QueryPeriod, ...]:
        """Return the periods that the query names, such as `last week`, or «летом 2023» (in summer 2023)."""
        if self.now is None:
            return ()
        others = (find_periods(antecedent.text, self.now) for antecedent in self.antecedents)
        return next(filter(None, (self._split.periods, *others)), ())

    def list_latest_periods(self) -> list[tuple[datetime, datetime]]:
        """Return start and end of each period; a yearly period is the latest one that has begun."""
        return [each.find_latest_recurrence(self.now) for each in self.periods] if self.now else []

    @cached_property
    def is_about_period(self) -> bool:
        """Return whether the query asks what happened or was said in a period, and names no topic.

        For example, "What did Anna talk about last week?" is about a period: a name is no topic. The result
        is False for a query about plans, and for one about the time before or after a period.
        """
        if not self._split.periods or self.antecedents:
            return False
        topic = " ".join(each.text for each in self._undated_words if each not in self._names)
        return (
            not mentions_plans(self.text[:LOOKED_AT])
            and BEFORE_OR_AFTER.isdisjoint(each.text.lower() for each in self._undated_words)
            and _is_within_periods(self._split.gaps)
            and frozenset(bm25.weigh_query(topic).indices) <= _list_general_terms()
        )

    @property
    def has_name(self) -> bool:
        """Return whether the query has a name, such as that of a person, outside of its periods.

        Without `now`, no name is found.
        """
        return bool(self._names)

    @cached_property
    def _names(self) -> frozenset[DateWord]:
        """Return the known given names outside of periods, and other capitalised words that are subjects."""
        return frozenset(each for gap in self._split.gaps for each in _list_names(gap, self.text))

    @cached_property
    def _split(self) -> PeriodSplit:
        return PeriodSplit((), ()) if self.now is None else split_at_periods(self.text[:LOOKED_AT], self.now)

    @cached_property
    def _undated_words(self) -> list[DateWord]:
        return [word for gap in self._split.gaps for word in gap if word.text]

    @cached_property
    def asks_for_time(self) -> bool:
        """Return whether the query asks for a time, by words such as "when" or "how long"."""
        return _WHEN.search(self.text) is not None

    @cached_property
    def is_about_user(self) -> bool:
        """Return whether the query has a word of the first person, which means the user: `what did I say`."""
        return not FIRST_PERSON.isdisjoint(self._word_set)

    @cached_property
    def is_about_assistant(self) -> bool:
        """Return whether the query has a word of the second person: `what did you say`."""
        return not SECOND_PERSON.isdisjoint(self._word_set)

    def find_names(self, names: Iterable[str]) -> frozenset[str]:
        """Return those of `names` that the query mentions.

        A query mentions a name in full, as one word of the name, as a short form or in a grammatical case. If
        the query mentions none of them, the result is the names in the newest antecedent that mentions any.
        """
        known = frozenset(names)
        texts = (self.text, *(antecedent.text for antecedent in self.antecedents))
        return next(filter(None, (find_mentioned_names(text, known) for text in texts)), frozenset())

    @cached_property
    def _word_set(self) -> frozenset[str]:
        return split_words(self.text)

    @cached_property
    def _searched_text(self) -> str:
        """Return the words of the query to search for."""
        if self.has_relative_times:
            return self.text
        words = split_date_words(self.text[:LOOKED_AT])
        return " ".join(each.text for each in words if each.kind not in RELATIVE_KINDS)

    @cached_property
    def terms(self) -> frozenset[int]:
        """Return the ids of the stemmed words of the query and its antecedents, without stop words."""
        return frozenset(self.term_weights)

    @cached_property
    def term_weights(self) -> dict[int, float]:
        """Return the weight of each term: 1 for words of the query, less for words of preceding messages."""
        return weigh_query_terms(self._searched_text, self.antecedents)

    @cached_property
    def words(self) -> Sparse:
        """Return the weights of the terms, of other forms of names and of concepts, for the vector store."""
        forms = " ".join(list_other_forms(self.text[:LOOKED_AT]))
        weights = dict.fromkeys(bm25.weigh_query(forms).indices, OTHER_FORM_WEIGHT) if forms else {}
        return concepts.add_query_concepts(weights | self.term_weights, self.text[:LOOKED_AT])


def _is_given_name(word: DateWord) -> bool:
    """Return whether a word is a capitalised given name, other than one with a role in dates, as "April"."""
    return _is_capitalised(word) and is_given_name(word.text.lower())


def _list_names(gap: Sequence[DateWord], query: str) -> Iterator[DateWord]:
    """Yield the names in a gap: the words before, between or after the periods of a query.

    A name is a known given name, or a capitalised word that is the subject, as in "What did Tomasz say?". In
    English, the subject follows an auxiliary verb, or another name. In Russian, a capitalised word is the
    subject if the query has one of `_OBJECTS`, if no preposition is before the word, and if it is no common
    word of the dictionary. In a query in capitals, only known given names are names.
    """
    has_object = not _OBJECTS.isdisjoint(split_words(query))
    is_cased = not query.isupper()
    is_subject = is_after_name = False
    for place, word in enumerate(gap):
        text = word.text.lower()
        if is_cyrillic(text):
            is_common = is_known_word(text) and not is_proper_name(text)
            is_after_preposition = place > 0 and "PREP" in list_grammemes(gap[place - 1].text.lower())
            is_subject = place > 0 and has_object and not is_common and not is_after_preposition
        may_be_name = is_cased and is_subject and text not in FIRST_PERSON
        is_name = _is_given_name(word) or (may_be_name and _is_capitalised(word))
        if is_name:
            yield word
        is_subject = is_name or text in _AUXILIARIES or (is_after_name and text in CONJUNCTIONS)
        is_after_name = is_name


def _is_capitalised(word: DateWord) -> bool:
    return word.kind is WordKind.OTHER and word.text[0].isupper()


def _is_within_periods(gaps: Sequence[Sequence[DateWord]]) -> bool:
    """Return whether all periods are times of the events that a query asks about.

    A period is not such a time if it is the topic of the query, or the end of a period, as after "up to", or
    if neither a punctuation mark nor a conjunction separates it from the period before it.

    Args:
        gaps: the words before the first period, between each period and the next, and after the last.
    """
    for place, gap in enumerate(gaps[:-1]):
        words = [each.text.lower() for each in gap if each.kind is not WordKind.THE]
        last = words[-1] if words else None
        if last in TOPIC_PREPOSITIONS or words[-2:] == ["up", "to"]:
            return False
        if last == "about" and DISCUSSION_WORDS.isdisjoint(words):
            return False
        if place > 0 and "" not in words and CONJUNCTIONS.isdisjoint(words):
            return False
    return True


@cache
def _list_general_terms() -> frozenset[int]:
    return frozenset(bm25.weigh_query(_GENERAL_WORDS).indices)


def split_words(text: str) -> frozenset[str]:
    """Return the distinct words in the first `LOOKED_AT` characters of a text, in lower case."""
    return frozenset(_WORD.findall(text[:LOOKED_AT].lower()))
