"""Parsing of facts: tokens, numbers, dates, names, heads, marks and poles, in both languages."""

import pytest

from mnemon_consumers.domain.alignment.parser import parse_fact
from mnemon_consumers.domain.alignment.statement import ParsedFact
from mnemon_consumers.domain.alignment.term import Term, TermKind
from mnemon_consumers.domain.alignment.tokenizer import tokenize


def _keys(text: str, kind: TermKind) -> list[str]:
    return [key for term in parse_fact(text).terms if term.kind is kind for key in sorted(term.keys)]


def _texts(terms: tuple[Term, ...] | list[Term]) -> list[str]:
    return [term.text for term in terms]


def _head(text: str) -> list[str]:
    return _texts([term for term in parse_fact(text).terms if term.is_head])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Likes tea, coffee.", ["likes", "tea", "coffee"]),
        ("Anna's well-known C++ code", ["anna", "well-known", "c++", "code"]),
        ("Mail ann.lee@foo.example.org now", ["mail", "ann.lee@foo.example.org", "now"]),
        ("It's 7:40 on 2026-05-01", ["it's", "7:40", "on", "2026-05-01"]),
        ("Earns 20k or 1 200 000 €", ["earns", "20k", "or", "1 200 000", "€"]),
        ("Любит чай — зелёный", ["любит", "чай", "—", "зеленый"]),
        ("43-го числа, какой-то мейн-кун", ["43-го", "числа", "какой-то", "мейн-кун"]),
        ("मेरी बेटी और मेरा बेटा", ["मेरी", "बेटी", "और", "मेरा", "बेटा"]),
        ("ผมชอบกินข้าว", ["ผมชอบกินข้าว"]),
        ("İstanbul'da yaşıyor", ["istanbul'da", "yaşıyor"]),
        ("", []),
        ("🙂 \x00 \u200f", []),
    ],
)
def test_text_is_split_into_tokens(text: str, words: list[str]) -> None:
    assert [token.word for token in tokenize(text)] == words


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Earns three thousand", ["3000"]),
        ("Earns 20k", ["20000"]),
        ("Earns 20,500", ["20500"]),
        ("Weighs 7.5 kg", ["7.5"]),
        ("Wakes up at 7:40", ["7:40"]),
        ("Wakes up at 7:00", ["7"]),
        ("Eats at 6 pm", ["18"]),
        ("Lives on the 3rd street", ["3"]),
        ("Has twenty five hens", ["25"]),
        ("Has two hundred hens", ["200"]),
        ("Получает 14 тысяч", ["14000"]),
        ("Получает 14к", ["14000"]),
        ("Весит 7,5 кг", ["7.5"]),
        ("Живёт в 43-го года доме", ["43"]),
        ("Держит двадцать пять кур", ["25"]),
        ("Держит двести кур", ["200"]),
        ("Парковка стоит 35 тысяч", ["35000"]),
        ("Мечтает об отпуске", []),
        ("Парковка за сто рублей обоим", ["100", "2"]),
        ("Потратил 1 200 000 рублей", ["1200000"]),
        ("Likes tea", []),
    ],
)
def test_numbers_are_recognised(text: str, numbers: list[str]) -> None:
    assert _keys(text, TermKind.NUMBER) == numbers


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("Swims on Mondays", ["dates weekday 1"]),
        ("Was born in March", ["dates month 3"]),
        ("The exam is in May", ["dates month 5"]),
        ("May move to Rome", []),
        ("She may swim", []),
        ("I am a nurse", []),
        ("Is up at 6 am", ["dates morning"]),
        ("Плавает по понедельникам", ["dates weekday 1"]),
        ("Родился в марте", ["dates month 3"]),
        ("Экзамен к маю", ["dates month 5"]),
        ("Начало 2026-03-09", ["dates month 3"]),
    ],
)
def test_dates_are_recognised(text: str, dates: list[str]) -> None:
    assert _keys(text, TermKind.DATE) == dates


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Plays chess with Boris", ["boris"]),
        ("Emma plays chess", ["emma"]),
        ("Plays chess", []),
        ("Mail is ann@foo.org", ["ann@foo.org"]),
        ("Живёт в Твери", ["твери"]),
        ("Ольга играет в шахматы", ["ольга"]),
        ("Играет в шахматы", []),
    ],
)
def test_names_are_recognised(text: str, names: list[str]) -> None:
    assert _texts([term for term in parse_fact(text).terms if term.kind is TermKind.NAME]) == names


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("User likes tea", []),
        ("Likes tea", []),
        ("Found a flat", []),
        ("Bought the red bike", []),
        ("The kitchen walls are green", ["kitchen", "walls"]),
        ("Emma likes tea", ["emma"]),
        ("My older brother lives in Rome", ["older", "brother"]),
        ("The rent is 900", ["rent"]),
        ("Любит чай", []),
        ("Пользователь любит чай", []),
        ("Каждую неделю плавает", []),
        ("На завтрак ест кашу", []),
        ("Кур держит сосед", []),
        ("Сестра любит чай", ["сестра"]),
        ("Маму выписали из больницы", ["маму"]),
        ("Ольга любит чай", ["ольга"]),
        ("Забор покрашен в зелёный", ["забор"]),
        ("У брата есть лодка", ["брата"]),
    ],
)
def test_heads_are_recognised(text: str, head: list[str]) -> None:
    assert _head(text) == head


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("Likes tea", set()),
        ("Doesn't drink tea", {"negated"}),
        ("Never eats meat", {"negated"}),
        ("Sold the boat", {"ended", "past"}),
        ("Gave the old boat away", {"ended", "past"}),
        ("Sits on the left", set()),
        ("Moved to Rome", {"changed", "past"}),
        ("Eats not meat but fish", {"changed"}),
        ("Plans a trip", {"planned"}),
        ("Gave up sugar", {"ended", "quit", "past"}),
        ("Plays chess again", {"resumed"}),
        ("Любит чай", set()),
        ("Не пьёт чай", {"negated"}),
        ("Продал лодку", {"ended", "past"}),
        ("Уже не поёт", {"ended", "quit"}),
        ("Переехал в Тверь", {"changed", "past"}),
        ("Ест не мясо, а рыбу", {"changed"}),
        ("Планирует поездку", {"planned"}),
        ("Снова поёт", {"resumed"}),
        ("Ищет квартиру не дороже миллиона", set()),
    ],
)
def test_marks_are_recognised(text: str, marks: set[str]) -> None:
    statement = parse_fact(text)

    assert _marks(statement) == marks


def _marks(statement: ParsedFact) -> set[str]:
    names = ("negated", "ended", "changed", "planned", "past", "quit", "resumed")
    return {name for name in names if getattr(statement, f"is_{name}")}


@pytest.mark.parametrize(
    ("text", "word", "stages", "kinds"),
    [
        ("Is looking for a flat", "looking for", {"search+"}, set()),
        ("Plays the cello", "cello", set(), {"instrument-"}),
        ("Plays an instrument", "instrument", set(), {"instrument+"}),
        ("Ищет квартиру", "ищет", {"search+"}, set()),
        ("Играет на скрипке", "скрипке", set(), {"instrument-"}),
        ("Завёл собаку", "собаку", set(), {"dog+", "pet-"}),
    ],
)
def test_poles_are_recognised(text: str, word: str, stages: set[str], kinds: set[str]) -> None:
    term = next(term for term in parse_fact(text).terms if term.text == word)

    assert (set(term.stages), set(term.kinds)) == (stages, kinds)
