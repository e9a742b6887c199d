"""Names and their other forms in queries, and the people that they refer to."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mnemon_consumers.domain.alignment.morphology import fold_characters
from mnemon_consumers.retrieve.search.query.names import find_mentioned_names, is_given_name
from tests.support.call_counter import count_calls

SAME_ENGLISH = """
Kate Katherine | Kate Catherine | Katie Kate | Kathryn Katherine | Cathy Catherine | Akib Aqib
Elise Elisa | Jose José | Sofia Sophia | Sophie Sofia | Zoë Zoe | Chloé Chloe | Jon John | Jon Jonathan
Johnny John | Jack John | Bob Robert | Bobby Bob | Rob Robert | Bill William | Billy Bill | Will William
Liz Elizabeth | Lizzie Liz | Beth Elizabeth | Peggy Margaret | Maggie Margaret | Dick Richard
Rick Richard | Ted Edward | Ed Edward | Alex Alexander | Alex Alexandra | Chris Christopher
Chris Christina | Sam Samuel | Sam Samantha | Pat Patricia | Pat Patrick | Steven Stephen
Steve Stephen | Geoff Jeffrey | Jeffrey Geoffrey | Eric Erik | Carl Karl | Bryan Brian | Shawn Sean
Mike Michael | Micheal Michael | Jenny Jennifer | Jen Jenny | Nicolas Nicholas | Nick Nicholas
Filip Philip | Phillip Phil | Tony Anthony | Drew Andrew | Andy Andrea | Mohammed Muhammad
Yusuf Yousuf | Ayesha Aysha | Hakim Haqim | Hannah Hanna | Sara Sarah | Ann Anne | Annie Anna
Caitlin Caitlyn | Katelyn Kate | Isabel Izabel | Elisabeth Elizabeth | Caroline Carolyn | Terry Teresa
Matt Matthew | Mathew Matthew | Müller Muller | Björn Bjorn | Renée Renee | O'Brien O’Brien | Dave David
"""

DIFFERENT_ENGLISH = """
Maria Mario | Andrea Andrew | Alexander Alexandra | Jon Joan | John Joan | Jane Jean | Jane Joan
Ann Dan | Martin Marvin | Maria Marta | Mary Martha | Karen Carol | Carla Clara | Laura Lauren
Harry Larry | Henry Harriet | Daniel Danielle | Gabriel Gabrielle | Christian Christina | Paul Paula
Eric Erica | Robert Roberta | Patrick Patricia | Michael Michelle | Stephen Stephanie | Joseph Josephine
Emily Emma | Alice Lisa | Aaron Erin | Ellen Helen | Hannah Anna | Susan Hannah | Liz Beth | Bob Bill
Bob Bert | Tim Tom | Ted Ned | Kate Kay | Jim Tim | Sam Pam | Rob Ron | Ray Roy | Dan Don | Jack Jake
Lily Lucy | Nora Nina | Lena Lisa | Marian Mariano | Julia Julian | Victor Victoria | Brian Ryan
Kevin Kelvin | Marcus Martin | Angela Angelo | Elena Alina | Oliver Olivia | Samuel Samantha
Justin Justine | Carol Caroline | Jason Mason | Boris Doris | Dean Deana | George Georgia
Christopher Christina | Anna Ada | Tara Tanya
"""

SAME_RUSSIAN = """
Саша Александр | Саша Александра | Шура Александр | Саня Саша | Женя Евгений | Женя Евгения | Женька Женя
Катя Екатерина | Катюша Катя | Маша Мария | Маруся Маша | Настя Анастасия | Дима Дмитрий | Митя Дима
Миша Михаил | Лёша Алексей | Леша Лёша | Алёна Алена | Лена Елена | Вова Владимир | Володя Вова
Влад Владимир | Влад Владислав | Слава Вячеслав | Слава Ярослав | Оля Ольга | Таня Татьяна | Наташа Наталья
Наталия Наталья | Юля Юлия | Света Светлана | Ира Ирина | Коля Николай | Петя Пётр | Паша Павел | Ваня Иван
Серёжа Сергей | Серёга Серёжа | Гоша Георгий | Гоша Егор | Костя Константин | Люба Любовь | Надя Надежда
Лёва Лев | Рома Роман | Лиза Елизавета | Даша Дарья | Соня Софья | Софья София | Ксюша Ксения | Ксюша Оксана
Данила Даниил | Даня Даниил | Аня Анна | Боря Борис | Гриша Григорий | Рита Маргарита | Стас Станислав
Тёма Артём | Юра Юрий | Яша Яков
"""

RUSSIAN_CASES = """
Сашей Саша | Сашей Александр | Жени Женя | Кати Катя | Катей Екатерина | Машей Мария | Насте Настя
Ольги Ольга | Петром Пётр | Павла Павел | Веры Вера | Льву Лев | Аню Аня | Сергеем Sergey
"""

DIFFERENT_RUSSIAN = """
Виктор Виктория | Маша Даша | Маша Саша | Саша Паша | Миша Гриша | Мария Марина | Мария Марта | Анна Алла
Аня Таня | Аня Ваня | Оля Коля | Оля Юля | Оля Поля | Лена Лера | Лена Алина | Катя Настя | Вова Слава
Иван Илья | Игорь Егор | Антон Артём | Антон Андрей | Алина Арина | Алиса Алина | Полина Ирина
Карина Марина | Дима Тима | Рома Тома | Даша Наташа | Вера Валера | Вика Ника | Кирилл Кира | Юрий Юлия
Сергей Сева | Борис Богдан | Павел Пётр | Олег Ольга | Олеся Ольга | Лев Леонид | Женя Жанна
Никита Николай | Степан Стас | Владимир Владислав | Вячеслав Ярослав | Михаил Максим | Денис Дмитрий
Дарья Марья | Елена Елизавета | Роман Родион | Тимур Тимофей | Семён Степан | Инна Нина | Зоя Зина
Лида Люда | Галя Валя | Толя Коля | Яна Анна | Ульяна Яна | Вадим Влад | Ксения Оксана
"""

SAME_IN_ALPHABETS = """
Sasha Саша | Sasha Александр | Александр Aleksandr | Дмитрий Dmitry | Dmitri Dmitrii | Dima Дмитрий
Катя Katya | Katia Катя | Женя Zhenya | Евгений Evgeny | Yevgeny Евгений | Сергей Sergei | Юлия Yulia
Алексей Alexey | Aleksei Алексей | Михаил Mikhail | Mihail Mikhail | Ксения Xenia | Ksenia Ксюша | Илья Ilya
Фёдор Fedor | Джон John | Эмили Emily | Акиб Aqib | Максим Maxim | Макс Max | Елена Yelena | Наталья Natalya
"""

DIFFERENT_IN_ALPHABETS = """
Саша Masha | Юлия Ilya | Мария Mario | Джон Joan | Лена Lana | Антон Anna | Дима Dina
"""

GIVEN_NAMES = """
kate katherine katelyn bob bobby grace ruby mark will sasha dmitry sergei olga yulia
саша сашей анна анны лев вера джон
"""

OTHER_WORDS = """
week wall golden bay silver west green new san app pink street smith
мост дом лес дома петров москва
"""

FIRST_NAMES = ("Anna", "Kate", "Boris", "Саша", "Евгений")
LAST_NAMES = ("Smith", "Jones", "Brown", "Miller", "Davis", "Wilson", "Moore", "Taylor", "Clark", "Hall")


def _split_pairs(*tables: str) -> list[tuple[str, str]]:
    pairs = [
        tuple(pair.split())
        for table in tables
        for line in table.strip().splitlines()
        for pair in line.split("|")
    ]
    return [(one, other) for one, other in pairs]


def _is_mentioned(name: str, *, by: str) -> bool:
    return bool(find_mentioned_names(f"Did {by} come?", [name]))


@pytest.mark.parametrize(("one", "other"), _split_pairs(SAME_ENGLISH, SAME_RUSSIAN, SAME_IN_ALPHABETS))
def test_query_mentions_person_by_other_form_of_name(one: str, other: str) -> None:
    assert _is_mentioned(one, by=other)
    assert _is_mentioned(other, by=one)


@pytest.mark.parametrize(("form", "name"), _split_pairs(RUSSIAN_CASES))
def test_query_mentions_person_by_grammatical_case_of_name(form: str, name: str) -> None:
    assert _is_mentioned(name, by=form)


@pytest.mark.parametrize(
    ("one", "other"), _split_pairs(DIFFERENT_ENGLISH, DIFFERENT_RUSSIAN, DIFFERENT_IN_ALPHABETS)
)
def test_query_does_not_mention_person_by_other_name(one: str, other: str) -> None:
    assert not _is_mentioned(one, by=other)
    assert not _is_mentioned(other, by=one)


@pytest.mark.parametrize(
    ("name", "form", "is_mentioned"),
    [
        ("Anna Petrova", "Anna", True),
        ("Dr. Kate Smith", "Katherine Smith", True),
        ("Анна Петрова", "Анны Петровой", True),
        ("Ludwig van Beethoven", "Vincent van Gogh", False),
        ("J. Smith", "Smith", True),
        ("🙂", "🙂", False),
        ("田中", "田中", True),
    ],
)
def test_query_mentions_person_by_words_of_name(name: str, form: str, is_mentioned: bool) -> None:
    assert _is_mentioned(name, by=form) is is_mentioned


@pytest.mark.parametrize(
    ("query", "names", "named"),
    [
        # Spellings and short forms.
        ("What is Kate's dog called?", "Katherine Bob", "Katherine"),
        ("what is kate's dog called?", "Katherine Bob", "Katherine"),
        ("what is sashas dog called", "Sasha Bob", "Sasha"),
        ("What is Emi’s job?", "Emi Bob", "Emi"),
        ("EMI'S JOB", "Emi Bob", "Emi"),
        ("What did aqib cook?", "Akib Bob", "Akib"),
        ("What did Jose cook?", "José Bob", "José"),
        ("What did Elisa cook?", "Elise Bob", "Elise"),
        ("What did Katherin cook?", "Katherine Bob", "Katherine"),
        ("Where did Stephenie go?", "Stephanie Bob", "Stephanie"),
        # Several people match: the one with the nearest spelling, or all if in doubt.
        ("What did Elisa cook?", "Elise Elisa", "Elisa"),
        ("What did Kate cook?", "Katherine Kate", "Kate"),
        ("What did Maria cook?", "Mario Maria", "Maria"),
        ("What did Alex cook?", "Alexander Alexandra Bob", "Alexander Alexandra"),
        ("What did Kate and Bob cook?", "Katherine Robert Anna", "Katherine Robert"),
        ("Что готовит Саша?", "Александр Александра Боря", "Александр Александра"),
        ("Что готовит Женя?", "Евгений Евгения", "Евгений Евгения"),
        ("Что готовит Женя?", "Евгений Женя", "Женя"),
        # Grammatical cases and scripts.
        ("Что Саша подарил Ане?", "Александр Анна", "Александр Анна"),
        ("Кто был с Сашей?", "Александр Боря", "Александр"),
        ("кто был с сашей?", "Саша Боря", "Саша"),
        ("Кто был у Александра?", "Александр Боря", "Александр"),
        ("Что любит Александра?", "Александр Александра", "Александра"),
        ("Где живёт Сашина мама?", "Саша Боря", "Саша"),
        ("Где Настины книги?", "Настя Боря", "Настя"),
        ("Что сказали Акибу?", "Aqib Bob", "Aqib"),
        ("Что сказали Сергею?", "Sergei Bob", "Sergei"),
        ("What did Sasha say?", "Саша Боря", "Саша"),
        ("What did Dima say?", "Дмитрий Боря", "Дмитрий"),
        ("Что сказала Дашенька про Льва?", "Дарья Лев", "Дарья Лев"),
        # Ordinary words that are, or resemble, names.
        ("What mark did I get from Anna?", "Mark", ""),
        ("What did Mark get from Anna?", "Mark", "Mark"),
        ("what did mark get", "Mark", "Mark"),
        ("Will it rain?", "Will", ""),
        ("will it rain", "Will", ""),
        ("Where will Will go?", "Will", "Will"),
        ("Will's dog?", "Will", "Will"),
        ("Do you hope that art has grace, Anna?", "Hope Art Grace", ""),
        ("Did Hope see Art with Grace?", "Hope Art Grace", "Hope Art Grace"),
        ("May I ask?", "May", ""),
        ("What did we do in May?", "May", ""),
        ("What happened on 3 May?", "May", ""),
        ("What did we do in June 2024?", "June", ""),
        ("What did April say to June?", "June April", "June April"),
        ("Salt and pepper or an egg?", "Ann Anna", ""),
        ("Was there a bill to pay, Anna?", "William", ""),
        ("Did Bill pay?", "William", "William"),
        ("Which marks did Anna get?", "Mark", ""),
        ("Did he marry her?", "Mary", ""),
        ("Did you see how many feel well this week?", "Si Manny Phil Vic Thys", ""),
        ("look at all the valley", "Luke Luc Al Wally", ""),
        ("Что было на той неделе в России?", "Rosie Тая", ""),
        ("What does Christmas in Boston cost?", "Christina Boris Chris", ""),
        ("What is the market in Spain?", "Margaret Spencer", ""),
        ("Какая вера у Анны?", "Вера", ""),
        ("Что читает Вера?", "Вера", "Вера"),
        ("что читает вера", "Вера", "Вера"),
        ("Какой роман читает Анна?", "Роман", ""),
        ("О чём Роман спросил Анну?", "Роман", "Роман"),
        ("Чего боится лев?", "Лев", "Лев"),
        ("Мне нужна любовь и надежда", "Любовь Надежда", ""),
        ("Почему дома нет света?", "Света", ""),
        ("Верит ли Анна в это?", "Вера", ""),
        ("Коли так, то иди", "Анна", ""),
        # Names other than given names.
        ("Что посоветовала мама?", "Мама", "Мама"),
        ("Что подарили маме?", "Мама", "Мама"),
        ("What did the coach say?", "Coach", "Coach"),
        ("What did user42 say?", "user42", "user42"),
        ("田中さんは何が好き？", "田中", "田中"),
        ("민수가 뭐라고 했어?", "민수", "민수"),
        ("What?", "🙂", ""),
        ("", "Anna", ""),
    ],
)
def test_query_refers_to_people_by_forms_of_their_names(query: str, names: str, named: str) -> None:
    assert find_mentioned_names(query, names.split()) == frozenset(named.split())


def test_two_words_of_a_name_refer_to_one_person() -> None:
    names = ["Anna Smith", "Anna Jones", "Speaker 1", "Speaker 2"]

    assert find_mentioned_names("What does Anna like?", names) == {"Anna Smith", "Anna Jones"}
    assert find_mentioned_names("What does Anna Smith like?", names) == {"Anna Smith"}
    assert find_mentioned_names("What did Anna Smith tell Anna Jones?", names) == {"Anna Smith", "Anna Jones"}
    assert find_mentioned_names("What did Speaker 2 say?", names) == {"Speaker 2"}
    assert find_mentioned_names("What did User43 say?", ["user42"]) == frozenset()


def test_word_of_a_full_name_is_enough() -> None:
    assert find_mentioned_names("What does Petrova like?", ["Anna Petrova", "Bob"]) == {"Anna Petrova"}
    assert find_mentioned_names("Что сказала Петрова?", ["Анна Петрова", "Bob"]) == {"Анна Петрова"}
    assert (
        find_mentioned_names("What does the user of this like?", ["Tom of Finland", "The Boss"])
        == frozenset()
    )


@pytest.mark.parametrize("word", GIVEN_NAMES.split())
def test_names_and_short_forms_are_given_names(word: str) -> None:
    assert is_given_name(word)


@pytest.mark.parametrize("word", OTHER_WORDS.split())
def test_words_that_sound_like_names_are_no_given_names(word: str) -> None:
    assert not is_given_name(word)


@given(st.text(max_size=60), st.lists(st.text(max_size=20), max_size=5))
def test_any_text_and_names_are_compared(query: str, names: list[str]) -> None:
    assert find_mentioned_names(query, names) <= frozenset(names)


@given(st.text(alphabet=st.characters(categories=["Lu", "Ll"]), min_size=1, max_size=20))
def test_name_is_found_as_it_is_written(name: str) -> None:
    name = name.capitalize()
    # Some small letters, such as the mathematical ones, have no capital.
    assume(fold_characters(name)[0].isupper())

    assert find_mentioned_names(f"Yesterday {name}'s dog barked", [name]) == {name}


def test_query_against_fifty_names_takes_little_work() -> None:
    names = [f"{first} {last}" for first in FIRST_NAMES for last in LAST_NAMES]
    queries = [f"What did Katherin say to Сашей about the trip to Boston number {n}?" for n in range(200)]
    find_mentioned_names(queries[0], names)

    calls = count_calls(lambda: [find_mentioned_names(query, names) for query in queries])

    # At most 20 calls for each name, four times the usual number; comparing every word takes more.
    assert calls / len(queries) < 20 * len(names)
