"""Classification of a fact by its words: kind, tier, importance and expiry that its proposal leaves out."""

import re
from datetime import datetime
from functools import lru_cache
from re import Pattern
from typing import Final

from mnemon_consumers.domain.policy.default_expiry import compute_default_expiry
from mnemon_consumers.domain.policy.expiry.text import find_expiry
from mnemon_consumers.domain.policy.wording import compile_pattern, join_lines
from mnemon_contracts.events.memory import Fact, FactProposedV1, Kind, Tier
from mnemon_contracts.settings.groups import SettingsV1

HIGH_IMPORTANCE: Final = 9
NORMAL_IMPORTANCE: Final = 5
LOW_IMPORTANCE: Final = 2


CACHED_MATCHES: Final = 64
"""Maximum number of matches that a process caches: classification matches the same words several times."""


def _compile_words(lines: str) -> Pattern[str]:
    return compile_pattern(rf"(?<!\w)(?:{lines})(?!\w)")


_NAME: Final = _compile_words(
    r"""(?:user|his|her|their|my|full|first|last|nick|sur)(?:'s|’s)?\s?(?:\w+\s)?name|name is|named|is called|
    goes by|call(?:ed)? me|
    зовут|имя|имени|фамилия|отчество|прозвище|называть меня"""
)
_LANGUAGE: Final = _compile_words(
    r"""(?:native|mother|first|preferred|favou?rite) (?:language|tongue)|
    (?:speaks?|prefers?|answers? (?:him |her |me |them )?in|fluent in)
    [ ](?:english|russian|german|french|spanish|italian|portuguese|chinese|japanese|ukrainian|polish|turkish)|
    родной язык|язык общения|
    (?:говор|предпочита|владе|обща|отвеча|понима)\w+(?: \w+)?(?: на| по)?[ -]
    (?:русск|английск|немецк|французск|испанск|итальянск|португальск|китайск|японск|украинск|польск|турецк)\w+"""
)
_PREFERENCE: Final = _compile_words(
    r"""prefer(?:s|red|ences?)?|likes?|loves?|adores?|enjoys?|hates?|dislikes?|favou?rites?|can['’]?t stand|
    (?:does not|doesn['’]?t|do not|don['’]?t) (?:like|want|eat|drink)|is (?:fond of|into|keen on)|fan of|
    rather than|предпоч\w+|любит|люблю|любим\w+|нрав(?:ится|ятся)|обожа\w+|ненави\w+|терпеть не \w+|
    не перенос(?:ит|ят)|не (?:ем|ест|пью|пь[её]т)|
    разлюбил\w*|полюбил\w*|увлека\w+|фанат\w*|поклонни\w+"""
)
_PROFESSION: Final = _compile_words(
    r"""works? (?:as|at|for|in)|working as|employed|profession|job|occupation|career|freelancers?|
    (?:is|am|as) an? (?:\w+ ){0,3}(?:developer|engineer|programmer|teacher|doctor|nurse|designer|lawyer|
    student|manager|accountant|architect|scientist|analyst|writer|journalist|chef|cook|driver|artist|musician|founder)|
    работа(?:ет|ю|ем)|профессия|профессии|должност\w+|по образованию|специальност\w+|трудится|
    (?:программист|разработчик|инженер|учител|врач|дизайнер|юрист|студент|менеджер|бухгалтер|архитектор|аналитик|
    журналист|повар|водител|художни|музыкант|фрилансер|предпринимател)\w*"""
)
_FAMILY: Final = _compile_words(
    r"""wife|husband|spouse|married|divorced|sons?|daughters?|child(?:ren)?|kids?|mother|father|parents?|mom|dad|
    brothers?|sisters?|grand(?:mother|father|parent|son|daughter)s?|nephews?|nieces?|girlfriend|boyfriend|
    жен(?:а|ы|е|у|ой)|муж(?:а|у|ем|е)?|супруг\w*|женат|замужем|развед[её]н\w*|сын\w{0,4}|доч(?:ь|ери|ка|ку)|
    дет(?:и|ей|ям)|реб[её]н\w+|мам(?:а|ы|е|у|ой)|пап(?:а|ы|е|у|ой)|мат(?:ь|ери)|отец|отца|отцом|родител\w+|
    брат\w{0,3}|сестр\w+|бабушк\w+|дедушк\w+|племянни\w+|девушка|парень"""
)
_HOME: Final = _compile_words(
    r"""(?:lives?|living|resides?|based|born|grew up|raised) in|moved (?:to|from)|comes? from|is from|am from|
    home ?town|relocated to|
    жив[уеё]\w*|прожива\w+|родил\w+|родом|переехал\w*|вырос\w*|родной город|из города|город\w* проживания"""
)
_PERSON: Final = _compile_words(
    r"""birthday|born on|years old|aged \d+|time ?zone|pronouns|
    день рождения|возраст|часовой пояс|\d+ (?:лет|год|года)"""
)
_END: Final = r"""(?!\w)(?= ?(?:$|[^\w\s'’]|
(?:because|due|since|and|or|at all|из-за|потому|так как|и|или|совсем|вообще)(?!\w)))"""
"""Pattern of the place after a food: the end of the text, a mark, or a word such as "because". A text such as
"can't drink coffee after noon", which tells a habit, does not match."""

_FOOD: Final = r"""(?:any |raw |cow['’]?s )?(?:
gluten|lactose|dairy|milk|cheese|butter|cream|wheat|rye|barley|corn|oats|bread|nuts?|peanuts?|almonds?|
walnuts?|hazelnuts?|cashews?|sesame|eggs?|fish|salmon|tuna|shellfish|seafood|shrimps?|prawns?|crab|soya?|
beans?|lentils?|chickpeas?|legumes|celery|mustard|lupin|sulphites|sugar|sweets|fructose|honey|chocolate|
salt|fat|fatty food|fried food|spicy food|caffeine|coffee|alcohol|meat|pork|beef|chicken|grapefruit|
citrus|oranges?|apples?|kiwis?|bananas?|strawberries|mango(?:e?s)?|pineapples?|avocados?|tomato(?:es)?|
onions?|garlic|mushrooms?|potato(?:es)?|penicillin|amoxicillin|antibiotics|aspirin|ibuprofen|paracetamol|
codeine|ana?esthe(?:sia|tics?))
(?: products?)?"""
_RUSSIAN_FOOD: Final = r"""(?:коровье |свежие )?(?:
глютен\w*|лактоз\w+|молок[оау]|молочн\w+|молочк\w+|сыра?|творога?|масл[оа]|пшениц\w+|рожь|ржаное|ячмень|
кукуруз\w+|хлеба?|мучно\w+|орех(?:и|ов)?|арахиса?|миндаля?|фундука?|кунжута?|яйц[аоу]|яиц|рыб[ауы]|
морепродукт\w*|креветк\w+|со[юяи]|бобов\w+|горчиц\w+|сельдере\w+|сахара?|сладко(?:е|го)|фруктоз\w+|
м[её]да?|шоколада?|сол[ьи]|сол[её]но\w+|жирно\w+|жарено\w+|копч[её]но\w+|остро(?:е|го)|кофе|кофеина?|
алкогол[ья]|мяс[оа]|говядин\w+|свинин\w+|куриц[уы]|грейпфрута?|цитрусов\w+|цитрусы|апельсин\w+|яблок\w*|
киви|банан\w*|клубник\w+|манго|ананас\w*|авокадо|помидор\w*|томат\w*|лука?|чеснока?|гриб(?:ы|ов)|
картош\w+|пенициллина?|амоксициллина?|антибиотик\w*|аспирина?|ибупрофена?|парацетамола?|анальгина?|
наркоза?|анестези\w+)
(?: продукт\w*)?"""
_INTOLERANCE: Final = _compile_words(
    rf"""(?:can['’]?t|can ?not|can no longer|must ?n['’]?t|must not|(?:not allowed|unable) to)
    [ ](?:eat|drink|have|tolerate|digest) {_FOOD}{_END}|
    (?:don['’]?t|doesn['’]?t|do not|does not) eat (?:gluten|lactose){_END}|
    нельзя (?:есть |пить |кушать |употреблять )?{_RUSSIAN_FOOD}{_END}|
    {_RUSSIAN_FOOD} (?:мне |ему |ей |нам |пользователю )?нельзя{_END}|
    не (?:могу|может) (?:есть|пить|кушать|употреблять) {_RUSSIAN_FOOD}{_END}|
    (?:не|плохо|тяжело) (?:переношу|перенос(?:ит|им|ят)|усваива(?:ю|ет))
    [ ](?:глютен|лактоз|казеин|фруктоз|молок|молочн|наркоз|анестези|пенициллин|амоксициллин|антибиотик|
    аспирин|ибупрофен|анальгин|новокаин|лидокаин|йод)\w*{_END}|
    не (?:ем|ест) (?:глютен|лактозу){_END}"""
)
"""Food or medicine that a person must not have. «Не переношу рыбу» and "can't stand fish" tell a dislike."""

_HEALTH: Final = _compile_words(
    rf"""allerg\w+|diabet\w+|asthma\w*|epilep\w+|c(?:o)?eliac|intoleran\w+|pregnan\w+|disab\w+|chronic|
    diagnos\w+|health|blood type|insulin|vegan|vegetarian|pescatarian|medication|meds|hypertension|
    contraindicated|(?:is|am|i['’]m|eats?|strictly) gluten[- ]free|gluten[- ]free diet|
    (?:keeps?|eats?(?: only)?) (?:kosher|halal)|
    blood[- ]thinners?|anticoagulants?|beta[- ]blockers?|antidepressants?|statins?|warfarin|metformin|epipen|
    dialysis|(?:have|has|had|got|i['’]ve) (?:an? )?(?:\w+ )?pacemaker(?: implanted)?{_END}|
    (?:heart|kidney|liver) (?:conditions?|disease|failure|murmur|defect|problems?|trouble|transplant|surgery)|
    had (?:an?|two) (?:heart attacks?|strokes?)|arrhythmia|(?:high|low) blood pressure|migraines?|arthritis|
    ana?emi[ac]|ha?emophilia\w*|eczema|psoriasis|tinnitus|vertigo|hay fever|insomnia|ibs|hiv|
    adhd|autis(?:m|tic)|dyslexi[ac]|(?:is|am|i['’]m) bipolar|bipolar disorder|anxiety disorder|
    (?:have|has|with|from) depression|
    hard of hearing|hearing aids?|colou?r[- ]?blind|wheelchair|
    (?:is|am|i['’]m|legally|partially) (?:deaf|blind)(?! to)|
    аллерг\w+|диабет\w*|астм\w+|эпилепс\w+|целиаки\w+|непереносим\w+|беремен\w+|инвалид\w+|хроническ\w+|
    диагноз\w*|групп\w+ крови|инсулин\w*|веган\w*|вегетариан\w+|гипертони\w+|здоровь\w+|лекарств\w+|
    противопоказан\w*|безглютенов\w+ диет\w+|(?:ем|ест) только (?:кошерное|халяль\w*)|
    кров[ео]?[- ]?раз[жз]?жижа\w+|(?:для разжижения|разжижа\w+) кров[иь]|антикоагулянт\w*|бета-?блокатор\w*|
    антидепрессант\w*|статин(?:ы|ов)|варфарин\w*|метформин\w*|диализ\w*|кардиостимулятор\w*|
    (?:таблетк\w+|препарат\w*) (?:от|для) (?:давлени\w+|сердца|щитовидк\w+|щитовидной)|
    порок\w* сердца|больн\w+ сердц\w+|(?:проблем\w+|болезн\w+) (?:с )?(?:сердц|почк|печен)\w+|
    (?:был|перен[её]с\w*) (?:инфаркт|инсульт)|аритми\w+|(?:высок|повышенн|пониженн|низк)\w+ давлени\w+|
    мигрен\w+|артрит\w*|анеми\w+|гемофили\w+|экзем\w+|псориаз\w*|гастрит\w*|сколиоз\w*|поллиноз\w*|
    бессонниц\w+|вич|сдвг|аутизм\w*|аутист\w*|дислекси\w+|биполярн\w+ расстройств\w+|у \w+ депресси\w+|
    (?:я|он|она) (?:глух|слеп)(?:ой|ая)|слабослышащ\w+|слухов\w+ аппарат\w*|дальтони\w+|
    инвалидн\w+ коляск\w+"""
)
_IMPORTANT: Final = _compile_words(
    r"""important|critical|crucial|essential|urgent|must (?:always|never)|vital|
    важн\w+|критичн\w+|обязательно|срочн\w+|ни в коем случае|жизненно"""
)
_TRIVIAL: Final = _compile_words(
    r"""discussed|talked about|chatted about|mentioned in passing|asked about|joked|
    обсуд\w+|обсужда\w+|поговорили|говорили о|болтали|пошутил\w*|спрашивал\w*|упомянул\w* вскользь|мельком"""
)
_EVENT: Final = _compile_words(
    r"""birthday|wedding|meeting|appointment|interview|exam|conference|trip|flight|concert|anniversary|deadline|
    graduat\w+|moved|visited|bought|got married|started|finished|party|
    (?:on|next|last) (?:mon|tues|wednes|thurs|fri|satur|sun)day|
    день рождения|свадьб\w+|встреч[ауие]|собеседовани\w+|экзамен\w*|конференци\w+|поездк\w+|командировк\w+|
    рейс\w*|концерт\w*|годовщин\w+|дедлайн\w*|переехал\w*|купил\w*|съездил\w*|посетил\w*|защитил\w*|отпуск\w*|
    праздник\w*|юбиле\w+"""
)
_FOR_NOW: Final = _compile_words(
    r"""working on|this (?:week|month|morning|evening|weekend)|today|tonight|tomorrow|next week|these days|
    for the time being|for now|temporarily|
    (?:until|till|by) (?:next |this )?(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|tomorrow|january|february|
    march|april|may|june|july|august|september|october|november|december|week|month|the end of|\d[\w.:-]*)|
    на (?:этой|следующей|текущей) неделе|в этом месяце|сегодня|завтра|послезавтра|на днях|временно|пока что|
    до (?:понедельника|вторника|среды|четверга|пятницы|субботы|воскресенья|завтра|конца \w+|\d[\d.]*)|
    в ближайш\w+|работа\w+ над|в процессе"""
)
_UNTIL_YEAR: Final = re.compile(
    r"\b(?:until|till|by|до)\s+(?:\w+(?:[.-]?\s+|[.-])|\d\d?,\s+){0,4}?((?:19|20)\d\d)(?!\w)"
    r"(?!\s+(?:руб|евро|доллар|eur|usd|dollar|k?cal|km|км|р\b))",
    re.IGNORECASE,
)
"""An end with its year: "until March 2020", «до конца 2020» (until the end of 2020). An amount is no year."""

_NOW: Final = _compile_words(
    r"""currently|now|at the moment|at present|
    сейчас|теперь|в данный момент|в настоящее время"""
)
_SETTLED: Final = (_NAME, _LANGUAGE, _PROFESSION, _HOME, _INTOLERANCE, _HEALTH)
"""Words of facts that "now" does not make temporary: a user who now lives in Kazan lives there for good."""

_STANDING: Final = (*_SETTLED, _FAMILY, _PERSON)
_LASTING: Final = (_NAME, _LANGUAGE, _INTOLERANCE, _HEALTH)
"""Words of lasting facts. A text with one of them gets no end from its words, and words such as "until
Friday" do not make it temporary: "allergic to nuts, away until Friday"."""

_WEIGHTY: Final = (*_LASTING, _IMPORTANT)


def classify_proposal(proposed: FactProposedV1, at: datetime, settings: SettingsV1) -> Fact:
    """Return the fact that a proposal would become.

    An attribute that the proposal lacks comes from the words of its text, else from the default. A missing
    tier also depends on the expiry and the kind. Names come only from the proposal.

    Args:
        proposed: the proposal.
        at: the time of the proposal; a date such as "until Friday" is relative to it.
        settings: the tenant's settings, for the time zone in which days begin and for the days after which a
            working fact without a date expires.
    """
    text = join_lines(proposed.text)
    kind = proposed.kind or _classify_kind(text)
    expires_at = proposed.expires_at
    may_end = expires_at is None and proposed.tier in (None, "working")
    end = find_named_end(proposed, at, settings) if may_end else None
    tier = proposed.tier or _classify_tier(text, kind, at.year, dated=(expires_at or end) is not None)
    if tier == "working" and expires_at is None:
        expires_at = end or compute_default_expiry(at, settings.limits)
    return Fact(
        text=text,
        kind=kind,
        tier=tier,
        importance=proposed.importance or _rate_importance(text),
        expires_at=expires_at,
        names=proposed.names,
    )


def find_named_end(proposed: FactProposedV1, at: datetime, settings: SettingsV1) -> datetime | None:
    """Return the end that the words of a proposal name, such as "until Friday"; None if they name none.

    The result is None, too, for a lasting fact (`_LASTING`), and for an import, whose words may be years old.
    """
    text = join_lines(proposed.text)
    # The date of an imported line is not known: its "until Friday" may be years ago.
    if proposed.lineage.extractor == "import" or _has_any_match(_LASTING, text):
        return None
    return find_expiry(text, at, settings.time_stamps.zone)


def _classify_kind(text: str) -> Kind:
    if _TRIVIAL.search(text):
        return "conversation_insight"
    if _PREFERENCE.search(text) and not _INTOLERANCE.search(text):
        return "preference"
    return "event" if _EVENT.search(text) else "user_fact"


def _classify_tier(text: str, kind: Kind, year: int, *, dated: bool) -> Tier:
    # An end in a past year does not make a fact temporary.
    current = _UNTIL_YEAR.sub(lambda end: "" if int(end[1]) < year else end[0], text)
    if dated or (_FOR_NOW.search(current) and not _has_any_match(_LASTING, text)):
        return "working"
    if kind in ("conversation_insight", "conversation_summary"):
        return "archive"
    if _NOW.search(text) and not _has_any_match(_SETTLED, text):
        return "working"
    return "profile" if kind == "preference" or _has_any_match(_STANDING, text) else "archive"


def _rate_importance(text: str) -> int:
    if _has_any_match(_WEIGHTY, text):
        return HIGH_IMPORTANCE
    return LOW_IMPORTANCE if _TRIVIAL.search(text) else NORMAL_IMPORTANCE


def _has_any_match(patterns: tuple[Pattern[str], ...], text: str) -> bool:
    return any(_has_match(each, text) for each in patterns)


@lru_cache(maxsize=CACHED_MATCHES)
def _has_match(pattern: Pattern[str], text: str) -> bool:
    return pattern.search(text) is not None
