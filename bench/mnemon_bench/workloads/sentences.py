"""Generated facts and questions for the benchmarks, half of them English and half Russian."""

from collections.abc import Sequence
from typing import NamedTuple


class _Language(NamedTuple):
    topics: Sequence[str]
    questions: Sequence[str]
    names: Sequence[str]
    places: Sequence[str]


def _create_language(topics: Sequence[str], questions: Sequence[str], names: str, places: str) -> _Language:
    return _Language(topics, questions, names.split(), places.split())


_ENGLISH = _create_language(
    topics=(
        "My sister {name} has played the cello in {place} since {year}",
        "User's dog {name} was born in {place} in the spring of {year}",
        "User worked as a bookkeeper for {name} and Sons, {place}, until {year}",
        "Doctor {name} of {place} found an allergy to walnuts in {year}",
        "The blue bicycle was bought from {name} at a market in {place} in {year}",
        "User married {name} on a rainy day near {place} in {year}",
        "A neighbour called {name} taught the user to bake rye bread in {place}, {year}",
        "User's thesis on volcanoes was read by professor {name} in {place}, {year}",
        "User lost a chess final against {name} at the {place} open of {year}",
        "The summer house by {place} was sold to the {name} family in {year}",
    ),
    questions=(
        "who plays the cello in {place}?",
        "when was the dog {name} born?",
        "where did I work as a bookkeeper before {year}?",
        "which doctor in {place} found my allergy?",
        "who sold me the blue bicycle in {year}?",
        "when did {name} and I marry?",
        "who taught me to bake bread in {place}?",
        "what did professor {name} read?",
        "against whom did I lose at chess in {place}?",
        "to whom did we sell the summer house in {year}?",
    ),
    names=(
        "Anna Boris Clara Dmitri Elena Felix Greta Hugo Irene Jonas Karin Leo Mira Nils Olga Pavel Rosa "
        "Simon Tilda Viktor"
    ),
    places=(
        "Lisbon Bergen Kyoto Dublin Porto Tallinn Riga Bristol Lyon Ghent Turin Malmo Graz Basel Cork Aarhus "
        "Split Gdansk Leiden Tartu"
    ),
)
_RUSSIAN = _create_language(
    topics=(
        "Моя тётя по имени {name} поёт в хоре, город {place}, с {year} года",
        "Кошку пользователя зовут {name}, её нашли у вокзала, {place}, {year} год",
        "Пользователь учился водить грузовик, инструктор {name}, {place}, {year}",
        "Любимый суп пользователя готовила повар {name} в столовой, {place}, {year}",
        "Пользователь сломал руку на катке, помогла медсестра {name}, {place}, {year}",
        "Гитару подарил одноклассник по фамилии {name}, это было в городе {place} в {year} году",
        "Пользователь снимал квартиру у хозяйки по имени {name}, {place}, до {year} года",
        "Роман о моряках пользователь дописал в {year} году, редактор {name}, {place}",
        "Коллекцию марок оценил эксперт {name} на выставке, {place}, {year} год",
        "Пользователь прыгнул с парашютом вместе с другом, {name}, {place}, {year}",
    ),
    questions=(
        "кто поёт в хоре, {place}?",
        "где нашли кошку, которую зовут {name}?",
        "у кого я учился водить грузовик в {year} году?",
        "кто готовил мой любимый суп, {place}?",
        "когда я сломал руку, {place}?",
        "кто подарил гитару в {year} году?",
        "у кого я снимал квартиру, {place}?",
        "кто был редактором романа о моряках, {name}?",
        "кто оценил коллекцию марок в {year} году?",
        "с кем я прыгал с парашютом, {place}?",
    ),
    names=(
        "Алевтина Богдана Варвара Галина Дарья Ефросинья Жанна Зинаида Инна Клавдия Лариса Марфа Надежда "
        "Оксана Прасковья Раиса Светлана Таисия Ульяна Фаина"
    ),
    places=(
        "Казань Тверь Пермь Омск Томск Псков Самара Рязань Калуга Вологда Тула Орёл Курск Уфа Чита Брянск "
        "Кострома Елец Суздаль Муром"
    ),
)
_LANGUAGES = _ENGLISH, _RUSSIAN

TOPICS = 20
"""Number of consecutive facts that all have different topics."""

DIFFERENT = TOPICS * 20**3
"""Number of different facts; from this number on, `make_fact` returns them again."""


def make_fact(number: int) -> str:
    """Return a fact of about 65 characters."""
    return _fill_sentence(number, is_question=False)


def make_question(number: int) -> str:
    """Return a question that the fact of the same number answers; some other facts answer it, too."""
    return _fill_sentence(number, is_question=True)


def _fill_sentence(number: int, *, is_question: bool) -> str:
    language = _LANGUAGES[number % 2]
    row, topic = divmod(number // 2, len(language.topics))
    rest, name = divmod(row, 20)
    year, place = divmod(rest, 20)
    return (language.questions if is_question else language.topics)[topic].format(
        name=language.names[(name + topic) % 20],
        place=language.places[(place + name) % 20],
        year=1990 + (year + name + place) % 20,
    )
