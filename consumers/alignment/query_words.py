"""English and Russian words that have a part of their own in a query, or in a fact that it may name.

Russian words are spelled with е for ё.
"""

from collections.abc import Mapping
from typing import Final

_STOP: Final = """
a an the this that these those it its is are was were be been being am do does did has have had having
will would can could should may might must shall of in on at by for with about as into onto over under
behind after before during and or but if then than so to from out up down off very too also just only
really i me my mine myself we us our ours you your yours he him his she her hers they them their theirs
user users who whom whose which what where when why how there here some any each every all both forget
forgets delete remove erase drop please thing things fact facts memory memories remember information info
everything something know knows known called named и в во на с со к ко по о об обо от до из за у при для
без под над между через про как так что чтобы это этот эта эти этого этой этом том тот та те то же ли бы
а но или если когда где куда откуда кто кого кому чей чья чье какой какая какое какие который которая
которые я меня мне мной мой моя мое мои моего моей моему моих моим мою мы нас нам наш наша наше наши вы
вас вам ваш ваша ты тебя тебе твой твоя он его ему им она ее ей ею они их им свой своя свое свои своего
своей своих своему есть был была было были быть будет пользователь пользователя пользователю забудь
забыть забудьте удали удалить удалите сотри убери пожалуйста факт факты память вещь все все весь вся
очень тоже также уже еще только там тут здесь зовут называется
"""
STOP: Final = frozenset(_STOP.split())

FORMS: Final[Mapping[str, str]] = {
    form: forms.split()[0]
    for forms in (
        "eat ate eaten",
        "buy bought",
        "drive drove driven",
        "fly flew flown flight flights",
        "break broke broken",
        "grow grew grown",
        "write wrote written",
        "speak spoke spoken",
        "take took taken",
        "go went gone",
        "run ran",
        "drink drank drunk",
        "teach taught",
        "sell sold",
        "leave left",
        "есть ем ешь ест едим едят ел ела ели",
        "пить пью пьет пьем пьют",
        "жить живу живет живем живут",
        "любить люблю любит",
        "хотеть хочу хочет хотят",
        "идти иду идет идут шел шла",
        "ехать еду едет едут езжу ездит ездить",
        "лететь лечу летит летят летать",
        "ходить хожу ходит",
        "водить вожу водит",
        "купить куплю купил купила",
        "писать пишу пишет",
        "держать держу держит",
        "платить плачу платит",
    )
    for form in forms.split()[1:]
}
"""Verbs whose forms have no common stem, each form with its base."""

_COMMON: Final = """
live work like love prefer want go get make use take play eat drink read watch study speak buy plan name
day year morning evening week home new old favorite favourite жить работать работает любить предпочитает
хотеть ходить идти ехать делает пользуется играет есть пить читает смотрит учит изучает учится говорит
купить покупает планирует имя день год утром вечером неделя дома новый новая старый старая любимый
любимая
"""
COMMON: Final = frozenset(_COMMON.split())
"""Words that many facts have: alone they name none of them."""

_NEGATION: Final = """
not no never nor neither without cannot longer stopped quit dislike dislikes hate hates не нет ни никогда
без больше бросил бросила перестал перестала ненавидит.split(
"""
NEGATION: Final = frozenset(_NEGATION.split())

FROM: Final = frozenset({"from", "из", "от", "с", "со"})
TO: Final = frozenset({"to", "into", "в", "во", "на", "к", "ко", "до"})

PEOPLE: Final[Mapping[str, str]] = {
    word: person
    for person, words in {
        "mother": "mother mom mum mama мама мамы маме маму мамой мамин мамина мамино мать матери матерью",
        "father": "father dad papa папа папы папе папу папой папин папина отец отца отцу отцом",
        "parent": "parent parents родители родителей родителям родителями",
        "sister": "sister sisters сестра сестры сестре сестру сестрой сестер",
        "brother": "brother brothers брат брата брату братом братья братьев",
        "wife": "wife жена жены жене жену женой",
        "husband": "husband муж мужа мужу мужем",
        "partner": "partner girlfriend boyfriend fiance fiancee девушка девушки парень парня невеста жених",
        "son": "son sons сын сына сыну сыном сыновья",
        "daughter": "daughter daughters дочь дочери дочка дочки дочке дочку дочерью",
        "child": "child children kid kids ребенок ребенка ребенку дети детей детям",
        "grandmother": "grandmother grandma granny бабушка бабушки бабушке бабушку бабушкой",
        "grandfather": "grandfather grandpa дедушка дедушки дедушке дедушку дед деда деду",
        "uncle": "uncle дядя дяди дяде дядю",
        "aunt": "aunt тетя тети тете тетю",
        "cousin": "cousin кузен кузина кузины",
        "nephew": "nephew племянник племянника",
        "niece": "niece племянница племянницы племяннице",
        "friend": "friend friends друг друга другу другом друзья друзей подруга подруги подруге подругу",
        "boss": "boss manager начальник начальника начальница шеф шефа",
        "colleague": "colleague colleagues coworker коллега коллеги коллеге",
        "neighbour": "neighbour neighbours neighbor neighbors сосед соседа соседка соседки соседи соседей",
    }.items()
    for word in words.split()
}
"""Whom a fact may be about besides the user, by each form of the word."""
