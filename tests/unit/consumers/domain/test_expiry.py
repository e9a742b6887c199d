"""Expiry that the text of a fact names."""

import subprocess
import sys
from datetime import UTC, date, datetime

import pytest

from mnemon_consumers.domain.policy.expiry.text import find_expiry, names_end

SAID = datetime(2026, 3, 11, 15, 30, tzinfo=UTC)
"""Time at which the texts are said: a Wednesday."""


def ends_on(text: str) -> date | None:
    """Return the first day on which a text no longer holds, or None if the text names no end."""
    expires_at = find_expiry(text, SAID)
    assert (expires_at is not None) <= names_end(text)
    return expires_at.date() if expires_at else None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Working on a thesis until June", "2026-07-01"),
        ("User is working on a thesis until June 2027", "2027-07-01"),
        ("On vacation until Friday", "2026-03-14"),
        ("Is on vacation till Friday", "2026-03-14"),
        ("Is away until Wednesday", "2026-03-19"),
        ("Is away until tomorrow", "2026-03-13"),
        ("Is away until the day after tomorrow", "2026-03-14"),
        ("Is in Lisbon through 14 May", "2026-05-15"),
        ("Is in Lisbon through May 14th", "2026-05-15"),
        ("Is in Lisbon until the 14th of May for a talk", "2026-05-15"),
        ("Is in Lisbon until May 14, 2027", "2027-05-15"),
        ("Is in Lisbon until 2026-05-14", "2026-05-15"),
        ("Is in Lisbon until the 20th", "2026-03-21"),
        ("Is in Lisbon until the 11th", "2026-03-12"),
        ("Is in Lisbon until the 10th, for a talk", "2026-04-11"),
        ("Is on call through the 1st", "2026-04-02"),
        ("Works from home until the 5th of the month", "2026-04-06"),
        ("Is in Lisbon from 3 June until 10 June", "2026-06-11"),
        ("Is a student until 2027", "2028-01-01"),
        ("Is busy until next Friday", "2026-03-21"),
        ("Is busy until next week", "2026-03-23"),
        ("Is busy until next month", "2026-05-01"),
        ("Is busy until the weekend", "2026-03-16"),
        ("Is busy until the end of the week", "2026-03-16"),
        ("Is busy until the end of the month", "2026-04-01"),
        ("Is busy until the end of June", "2026-07-01"),
        ("Is busy until the end of the year", "2027-01-01"),
        ("Until Friday, the user is in Rome", "2026-03-14"),
        ("Has to finish the report by the end of the month", "2026-04-01"),
        ("Is writing a thesis by the end of June", "2026-07-01"),
        ("Is in Rome for two weeks", "2026-03-26"),
        ("Is on antibiotics for 10 days", "2026-03-22"),
        ("On vacation for a week", "2026-03-19"),
        ("Took leave until Friday", "2026-03-14"),
        ("Is employed at Acme until 31 December", "2027-01-01"),
        ("В отпуске до пятницы", "2026-03-14"),
        ("Отпуск до 20 марта", "2026-03-21"),
        ("Виза действительна до 14 мая 2027 года", "2027-05-15"),
        ("До пятницы в командировке", "2026-03-14"),
        ("Пьёт антибиотики до пятницы", "2026-03-14"),
        ("Пользователь в командировке до среды", "2026-03-19"),
        ("Пишет диплом до июня", "2026-07-01"),
        ("Пишет диплом до июня 2027 года", "2027-07-01"),
        ("Живёт у сестры до 14 мая", "2026-05-15"),
        ("Живёт у сестры до 14-го мая", "2026-05-15"),
        ("Живёт у сестры до 14 мая 2027 г.", "2027-05-15"),
        ("Живёт у сестры до 14.05.2026", "2026-05-15"),
        ("Живёт у сестры до 03.04.2026", "2026-04-04"),
        ("Живёт у сестры до 20 числа", "2026-03-21"),
        ("Живёт у сестры до 1 числа", "2026-04-02"),
        ("Живёт у сестры до 31-го числа", "2026-04-01"),
        ("В отпуске до 1-го", "2026-04-02"),
        ("В отпуске до 11-го включительно", "2026-03-12"),
        ("В отпуске по 5-е в Сочи", "2026-04-06"),
        ("В отпуске по 20 марта", "2026-03-21"),
        ("В отпуске с 12 по 20 марта", "2026-03-21"),
        ("Работает из Казани по май", "2026-06-01"),
        ("Занят до следующей пятницы", "2026-03-21"),
        ("Занята до следующей недели", "2026-03-23"),
        ("Занят до завтра", "2026-03-13"),
        ("Занят до послезавтра", "2026-03-14"),
        ("На больничном до конца недели", "2026-03-16"),
        ("В отпуске до конца месяца", "2026-04-01"),
        ("На даче до конца июня", "2026-07-01"),
        ("Снимает квартиру до конца года", "2027-01-01"),
        ("Снимает квартиру до 2027 года", "2028-01-01"),
        ("Надо сдать отчёт до конца месяца", "2026-04-01"),
        ("Должна дописать диплом к концу июня", "2026-07-01"),
        ("Уехал в командировку на две недели", "2026-03-26"),
        ("Взяла отпуск на неделю", "2026-03-19"),
        ("На больничном на 10 дней", "2026-03-22"),
        ("Анна в Лиссабоне до пятницы", "2026-03-14"),
        ("ON VACATION UNTIL FRIDAY", "2026-03-14"),
        ("User: Until Friday in Rome", "2026-03-14"),
        ("Is in Paris and Rome until Friday", "2026-03-14"),
        ("Anna, the user's sister, is in Rome until Friday", "2026-03-14"),
        ("Stays at the hotel «Астория» until Friday", "2026-03-14"),
        ("В Казани и Перми до пятницы", "2026-03-14"),
        ("Живёт в Казани и Перми до пятницы", "2026-03-14"),
        ("Анна, сестра пользователя, в отпуске до пятницы", "2026-03-14"),
        ("Живёт в гостинице «До Востребования» до пятницы", "2026-03-14"),
        ("Павел в отпуске до пятницы", "2026-03-14"),
        ("Is on call until 11 March", "2026-03-12"),
        ("Is on call until March 11th", "2026-03-12"),
        ("Is on call until the end of March", "2026-04-01"),
        ("Has to finish the report by the end of March", "2026-04-01"),
        ("На больничном до 11 марта", "2026-03-12"),
        ("На больничном по 11 марта", "2026-03-12"),
        ("На больничном с 2 по 11 марта", "2026-03-12"),
        ("На больничном до конца марта", "2026-04-01"),
        ("Должна дописать диплом к концу марта", "2026-04-01"),
        ("On leave from 1 to 15 April", "2026-04-16"),
        ("Is on sick leave from the 9th to the 11th of March", "2026-03-12"),
        ("Anna is away from 28 March to 2 April 2026", "2026-04-03"),
        ("Is on call from March 9 to March 15", "2026-03-16"),
    ],
)
def test_text_expires_after_the_end_that_it_names(text: str, expected: str) -> None:
    assert ends_on(text) == date.fromisoformat(expected)


@pytest.mark.parametrize(
    "text",
    [
        "Loves the song Until Friday",
        'Loves the song "Until Friday"',
        "Is reading the book 'until Friday'",
        "Is reading Until Friday",
        "The user is on vacation until Friday, loves sushi",
        "Loves sushi, is on vacation until Friday",
        "Loves sushi and is on vacation until Friday",
        "Loves sushi and relaxes until Friday",
        "Любит суши и отдыхает до пятницы",
        "Is on vacation until Friday and the dog is ill",
        "On vacation until Friday, really loves sushi",
        "Is in Rome until Friday, bought a house",
        "Is on vacation until Friday and sold the car",
        "Until Friday, the user is in Rome and met a friend",
        "В отпуске до пятницы, купил дом",
        "Уехал в Рим до пятницы и нашёл работу",
        "Until Friday, the user is in Rome and loves sushi",
        "Lives in Berlin until Friday's interview is over",
        "Lives in Berlin until the end of June’s project",
        "Is away from the 20th until the 5th",
        "Is on vacation next month until the 5th",
        "Is in Rome in April until the 5th",
        "Is away until the 1st of next month",
        "Is in training until the 1st week of June",
        "Is in training until the 32nd",
        "В отпуске с 20-го по 5-е",
        "В отпуске в апреле до 5-го",
        "В отпуске до 5 числа января",
        "В отпуске по 5 число этого месяца",
        "В отпуске до 5 числа через месяц",
        "Is away until the 5th of this month",
        "Живёт у сестры до 32-го",
        "Работает до 5-го этажа",
        "Должен сдать отчёт до 5-го",
        "Любит песню «До пятницы»",
        "Сейчас слушает песню «до пятницы»",
        "Сейчас слушает песню До пятницы",
        "В отпуске до пятницы, обожает суши",
        "Обожает суши, в отпуске до пятницы",
        "Обожает суши и в отпуске до пятницы",
        "До пятницы в отпуске, люблю суши",
        "Working on a thesis",
        "Sits by the window until it gets dark",
        "Works until 6 pm",
        "Works till 18:00 on Fridays",
        "Is not free until Friday",
        "Doesn't drink coffee until June",
        "Works at Acme until he retires",
        "Is in Rome until Friday or until she is well",
        "Lives in Rome since June",
        "Before June the user lived in Rome",
        "Has a birthday by the end of June",
        "The deadline of the thesis is by June",
        "Has a deadline until Friday",
        "Has to finish the report by Friday",
        "Moves to Berlin by the end of the month",
        "Is in Lisbon until 03/04",
        "Is in Lisbon until 03/04/2026",
        "Is in Lisbon until 03.04.2026",
        "Is in Lisbon until 14 May 2025",
        "Is in Lisbon until March",
        "Is in Lisbon until 10 March",
        "Is in Lisbon until 31 June",
        "Is in Lisbon until the end of February",
        "The conference is from 1 to 15 April",
        "Is planning a trip from 1 to 15 April",
        "Was on leave from 1 to 15 April",
        "Wants to be on leave from 1 to 15 April",
        "Is away every year from 1 to 15 April",
        "Is not on call from 1 to 15 April",
        "Is on call from 1 to 10 March",
        "Is on call from 9 to 17",
        "Is on leave from 1 to 15 April, bought a house",
        "Lived in Rome until June",
        "Was in Rome until Friday",
        "Has been in Rome until June",
        "Worked in Rome until 14 May",
        "Works Monday through Friday",
        "Works from Monday till Friday",
        "Sails from May until September",
        "Goes to the gym every day until Friday",
        "Two weeks until June",
        "Counts the days until Friday",
        "The wedding is postponed until June",
        "Is waiting until June to move",
        "Has been learning Spanish for two weeks",
        "Studied for two weeks",
        "Is going to Rome for two weeks",
        "Is in Rome for two weeks in July",
        "Is in Rome for two weeks every summer",
        "Buys food for two weeks",
        "Walked through May fields",
        "Is alone until June comes home",
        "Saves till 2030 euros are there",
        "Is allergic to nuts. On vacation until Friday",
        "Lives with Anna until June, then moves to Rome",
        "Is responsible for 12 days of leave",
        "Is in love for two months",
        "Promised to finish by the end of the week",
        "Stays up until late",
        "Is single until Mr May",
        "Сидит у окна до темноты",
        "Идёт пешком до работы",
        "Работает до 18:00",
        "Работает до шести вечера",
        "Работает до вечера",
        "Не пьёт кофе до июня",
        "Не свободен до пятницы",
        "Работает, пока не выйдет на пенсию",
        "Живёт в Казани с июня",
        "Жил в Казани до июня",
        "Работала врачом до 14 мая",
        "До июня жила в Казани",
        "Переедет в Рим до июня",
        "Закончит ремонт до пятницы",
        "Надо сдать отчёт до пятницы",
        "Хочет похудеть до июня",
        "Дедлайн по диплому до июня",
        "Срок сдачи до 14 мая",
        "День рождения сестры до пятницы",
        "В отпуске до 03/04",
        "В отпуске до 14 мая 2025 года",
        "В отпуске до марта",
        "В отпуске до 10 марта",
        "В отпуске до 31 июня",
        "В отпуске до конца февраля",
        "Работает с понедельника по пятницу",
        "Живёт на даче с мая по сентябрь",
        "Ходит в бассейн по пятницам",
        "Гуляет по Москве",
        "Каждый день ходит в зал до пятницы",
        "Осталось две недели до июня",
        "Две недели до отпуска",
        "Опоздал на неделю",
        "Старше брата на два месяца",
        "Едет в Рим на две недели",
        "В июле в Риме на две недели",
        "Составляет план на неделю",
        "Отложил свадьбу до июня",
        "В отпуске до полного выздоровления",
        "Живёт до сих пор с родителями",
        "Читает от начала до конца",
        "Проект до конца не понятен",
        "Копит до 2030 евро",
        "Живёт с Анной до июня, потом переезжает в Рим",
        "Отпуск на две недели",
        "Хочет выучить испанский до конца года",
        "Ехать до Мая минут 10",
    ],
)
def test_text_with_a_doubtful_end_or_none_does_not_expire(text: str) -> None:
    assert ends_on(text) is None


def test_days_begin_in_the_time_zone_of_who_says_it() -> None:
    # `said_at` is Wednesday in UTC, and Thursday in Moscow.
    said_at = datetime(2026, 3, 11, 22, tzinfo=UTC)
    assert find_expiry("Is away until tomorrow", said_at) == datetime(2026, 3, 13, tzinfo=UTC)
    moscow = find_expiry("Is away until tomorrow", said_at, "Europe/Moscow")
    assert moscow == datetime(2026, 3, 13, 21, tzinfo=UTC)


@pytest.mark.parametrize("said_at", [datetime.max.replace(tzinfo=UTC), datetime.min.replace(tzinfo=UTC)])
def test_times_at_the_ends_of_the_calendar_raise_no_error(said_at: datetime) -> None:
    assert find_expiry("Is away until the end of the year", said_at) in (None, datetime(2, 1, 1, tzinfo=UTC))


def test_expiry_is_relative_to_the_time_of_the_text() -> None:
    said_at = datetime(2019, 12, 31, 23, 59, tzinfo=UTC)
    assert find_expiry("Is away until Friday", said_at) == datetime(2020, 1, 4, tzinfo=UTC)
    assert find_expiry("В отпуске до пятницы", said_at) == datetime(2020, 1, 4, tzinfo=UTC)
    assert find_expiry("В отпуске до 7 января", said_at) == datetime(2020, 1, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "Is on call until 30 November",
        "Is on call until the end of November",
        "На больничном до 30 ноября",
        "На больничном до конца ноября",
    ],
)
def test_an_end_includes_its_last_day(text: str) -> None:
    for day in (29, 30):
        said_at = datetime(2026, 11, day, 12, tzinfo=UTC)
        assert find_expiry(text, said_at) == datetime(2026, 12, 1, tzinfo=UTC)
    assert find_expiry(text, datetime(2026, 12, 1, tzinfo=UTC)) is None


@pytest.mark.parametrize("text", ["Is on call until 29 February", "На больничном до конца февраля"])
def test_an_end_may_be_a_leap_day(text: str) -> None:
    said_at = datetime(2028, 2, 29, 12, tzinfo=UTC)
    assert find_expiry(text, said_at) == datetime(2028, 3, 1, tzinfo=UTC)


def test_dates_are_not_loaded_for_texts_without_one() -> None:
    program = """
import sys
from datetime import UTC, datetime
from mnemon_consumers.domain.policy.expiry.text import find_expiry
find_expiry("Prefers tea to coffee", datetime(2026, 3, 11, tzinfo=UTC))
print("dateparser" in sys.modules)
find_expiry("Is away until Friday", datetime(2026, 3, 11, tzinfo=UTC))
print("dateparser" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_day_that_the_month_does_not_have_names_no_end() -> None:
    for text in ("Is in Lisbon until the 30th", "В отпуске до 30-го"):
        assert find_expiry(text, datetime(2026, 1, 31, tzinfo=UTC)) is None
