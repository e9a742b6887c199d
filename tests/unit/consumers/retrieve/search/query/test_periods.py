"""Periods that a query names, relative to the time of the query."""

import time
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemon_consumers.retrieve.search.query.periods.period import QueryPeriod
from mnemon_consumers.retrieve.search.query.periods.period_split import find_periods
from tests.support.call_counter import count_calls

SATURDAY: Final = datetime(2026, 11, 21, 12, tzinfo=UTC)

ENGLISH: Final = (
    ("What did I say today?", "2026-11-21"),
    ("what did we discuss yesterday", "2026-11-20"),
    ("What did I eat the day before yesterday?", "2026-11-19"),
    ("what do I have to do tomorrow", "2026-11-22"),
    ("plans for the day after tomorrow", "2026-11-23"),
    ("What did we talk about last night?", "2026-11-20"),
    ("what did I tell you this morning", "2026-11-21"),
    ("three days ago I was ill", "2026-11-18"),
    ("Where was I 10 days ago?", "2026-11-11"),
    ("a week ago", "2026-11-11/2026-11-17"),
    ("two weeks ago", "2026-11-04/2026-11-10"),
    ("a couple of weeks ago", "2026-11-04/2026-11-10"),
    ("a few days ago", "2026-11-18"),
    ("one month ago", "2026-10-06/2026-11-05"),
    ("three months ago", "2026-08-06/2026-09-05"),
    ("a year ago", "2025-05-23/2026-05-22"),
    ("two years ago", "2024-05-23/2025-05-22"),
    ("half a year ago", "2026-05-06/2026-06-05"),
    ("a week and a half ago", "2026-11-08/2026-11-14"),
    ("two and a half weeks ago", "2026-11-01/2026-11-07"),
    ("a month and a half ago", "2026-09-21/2026-10-21"),
    ("2 wks ago", "2026-11-04/2026-11-10"),
    ("3 yrs ago", "2023-05-23/2024-05-21"),
    ("What did we say two weeks back?", "2026-11-04/2026-11-10"),
    ("5 hours ago", "2026-11-21"),
    ("in 3 days", "2026-11-24"),
    ("in a few days", "2026-11-24"),
    ("in a couple of weeks", "2026-12-02/2026-12-08"),
    ("in half a year", "2027-05-06/2027-06-05"),
    ("two weeks from now", "2026-12-02/2026-12-08"),
    ("What did I do last week?", "2026-11-09/2026-11-15"),
    ("this week", "2026-11-16/2026-11-22"),
    ("next week", "2026-11-23/2026-11-29"),
    ("the week before last", "2026-11-02/2026-11-08"),
    ("last month", "2026-10-01/2026-10-31"),
    ("this month", "2026-11-01/2026-11-30"),
    ("next month", "2026-12-01/2026-12-31"),
    ("last year", "2025-01-01/2025-12-31"),
    ("this year", "2026-01-01/2026-12-31"),
    ("the year before last", "2024-01-01/2024-12-31"),
    ("the month before last", "2026-09-01/2026-09-30"),
    ("the weekend before last", "2026-11-07/2026-11-08"),
    ("at the beginning of the month before last", "2026-09-01/2026-09-10"),
    ("the first week of the year before last", "2024-01-01/2024-01-07"),
    ("last weekend", "2026-11-14/2026-11-15"),
    ("this past weekend", "2026-11-14/2026-11-15"),
    ("two weekends ago", "2026-11-07/2026-11-08"),
    ("a couple of weekends ago", "2026-11-07/2026-11-08"),
    ("the last weekend of October", "2026-10-31/2026-11-01"),
    ("the first weekend of May 2024", "2024-05-04/2024-05-05"),
    ("this weekend", "2026-11-21/2026-11-22"),
    ("Where were we at the weekend?", "2026-11-21/2026-11-22"),
    ("What did we say on Monday?", "2026-11-16"),
    ("what happened Friday?", "2026-11-20"),
    ("last Friday", "2026-11-20"),
    ("last Saturday", "2026-11-14"),
    ("this past Saturday", "2026-11-14"),
    ("two Saturdays ago", "2026-11-07"),
    ("three Fridays ago", "2026-11-06"),
    ("the first Monday of November", "2026-11-02"),
    ("the last Friday in May 2024", "2024-05-31"),
    ("the last Sunday of December", "2025-12-28"),
    ("the last Friday of last month", "2026-10-30"),
    ("this Monday", "2026-11-16"),
    ("next Friday", "2026-11-27"),
    ("on Tuesday last week", "2026-11-10"),
    ("last week on Tuesday", "2026-11-10"),
    ("in the last two weeks", "2026-11-07/2026-11-21"),
    ("over the past month", "2026-10-21/2026-11-21"),
    ("the past 3 days", "2026-11-18/2026-11-21"),
    ("during the last few days", "2026-11-18/2026-11-21"),
    ("next two weeks", "2026-11-21/2026-12-05"),
    ("where was I in March", "2026-03-01/2026-03-31 yearly"),
    ("in May", "2026-05-01/2026-05-31 yearly"),
    ("last March", "2026-03-01/2026-03-31"),
    ("last December", "2025-12-01/2025-12-31"),
    ("next January", "2027-01-01/2027-01-31"),
    ("in March last year", "2025-03-01/2025-03-31"),
    ("in May of this year", "2026-05-01/2026-05-31"),
    ("What happened in Jan?", "2026-01-01/2026-01-31 yearly"),
    ("since Oct", "2026-10-01/2026-11-21"),
    ("last Sep", "2026-09-01/2026-09-30"),
    ("last year in March", "2025-03-01/2025-03-31"),
    ("March 2024", "2024-03-01/2024-03-31"),
    ("in Sept. 2023", "2023-09-01/2023-09-30"),
    ("in 2023", "2023-01-01/2023-12-31"),
    ("since 2019", "2019-01-01/2026-11-21"),
    ("since Monday", "2026-11-16/2026-11-21"),
    ("since the 3rd of May", "2026-05-03/2026-11-21"),
    ("since December", "2025-12-01/2026-11-21"),
    ("since last weekend", "2026-11-14/2026-11-21"),
    ("since a week ago", "2026-11-11/2026-11-21"),
    ("since two weeks ago", "2026-11-04/2026-11-21"),
    ("since the beginning of May", "2026-05-01/2026-11-21"),
    ("since mid-June 2024", "2024-06-11/2026-11-21"),
    ("since the last week of December", "2025-12-25/2026-11-21"),
    ("since 2020 to 2022", "2020-01-01/2022-12-31"),
    ("since the 3rd to the 10th of May 2024", "2024-05-03/2024-05-10"),
    ("since 2019-2021", "2019-01-01/2021-12-31"),
    ("from Monday to Friday", "2026-11-16/2026-11-20"),
    ("from May", "2026-05-01/2026-05-31 yearly"),
    ("2024-03", "2024-03-01/2024-03-31"),
    ("the year 2021", "2021-01-01/2021-12-31"),
    ("on 8 May 2023", "2023-05-08"),
    ("May 3, 2023", "2023-05-03"),
    ("on the 3rd of may", "2026-05-03 yearly"),
    ("the third of May 2024", "2024-05-03"),
    ("the twenty-first of June", "2026-06-21 yearly"),
    ("Feb 29", "2024-02-29 yearly"),
    ("on Friday, 6 March 2026", "2026-03-06"),
    ("2024-01-21", "2024-01-21"),
    ("21.01.2024", "2024-01-21"),
    ("21/01/2024", "2024-01-21"),
    ("03/05/2024", "2024-05-03, 2024-03-05"),
    ("in the first week of 2024", "2024-01-01/2024-01-07"),
    ("the last week of March 2024", "2024-03-25/2024-03-31"),
    ("the first week of this month", "2026-11-01/2026-11-07"),
    ("What happened the week of March 11, 2026?", "2026-03-09/2026-03-15"),
    ("the week of the 4th of May", "2026-05-04/2026-05-10"),
    ("the week of 30 December", "2025-12-29/2026-01-04"),
    ("on the weekend of 14 March", "2026-03-14/2026-03-15"),
    ("on the 14th of last month", "2026-10-14"),
    ("on the 3rd of this month", "2026-11-03"),
    ("the second week of May", "2026-05-08/2026-05-14 yearly"),
    ("the last day of February 2024", "2024-02-29"),
    ("the first half of 2025", "2025-01-01/2025-06-30"),
    ("at the beginning of the year", "2026-01-01/2026-04-30"),
    ("at the end of last month", "2026-10-22/2026-10-31"),
    ("early March 2025", "2025-03-01/2025-03-10"),
    ("mid-June 2024", "2024-06-11/2024-06-20"),
    ("late 2023", "2023-09-01/2023-12-31"),
    ("at the end of the week", "2026-11-21/2026-11-22"),
    ("last summer", "2026-06-01/2026-08-31"),
    ("this winter", "2026-12-01/2027-02-28"),
    ("in the summer of 2023", "2023-06-01/2023-08-31"),
    ("winter 2023", "2022-12-01/2023-02-28, 2023-12-01/2024-02-29"),
    ("winter 2023/24", "2023-12-01/2024-02-29"),
    ("in autumn", "2026-09-01/2026-11-30 yearly"),
    ("between March and May", "2026-03-01/2026-05-31 yearly"),
    ("between 3 and 10 May 2024", "2024-05-03/2024-05-10"),
    ("from 3 to 10 May", "2026-05-03/2026-05-10 yearly"),
    ("May 3-10, 2024", "2024-05-03/2024-05-10"),
    ("between 2020 and 2022", "2020-01-01/2022-12-31"),
    ("from November to February", "2026-11-01/2027-02-28 yearly"),
    ("from March 2024 to May", "2024-03-01/2024-05-31"),
    ("from Monday to Wednesday", "2026-11-16/2026-11-18"),
    ("2019-2021", "2019-01-01/2021-12-31"),
    ("between 28 December 2024 and 3 January 2025", "2024-12-28/2025-01-03"),
    ("What did I do in March and in July 2024?", "2024-03-01/2024-03-31, 2024-07-01/2024-07-31"),
    ("What did we talk about the other day?", "2026-11-14/2026-11-20"),
    ("what did you say the other night", "2026-11-14/2026-11-20"),
    ("a fortnight ago", "2026-11-04/2026-11-10"),
    ("two fortnights ago", "2026-10-21/2026-10-27"),
    ("last fortnight", "2026-11-07/2026-11-21"),
    ("over the past fortnight", "2026-11-07/2026-11-21"),
    ("two weeks back with Anna", "2026-11-04/2026-11-10"),
    ("What did we decide on the 14th?", "2026-11-14"),
    ("until the 30th", "2026-10-30"),
    ("in the last month", "2026-10-21/2026-11-21"),
    ("over the last year", "2025-11-21/2026-11-21"),
    ("at the end of the last month", "2026-10-22/2026-10-31"),
    ("in the previous month", "2026-10-01/2026-10-31"),
    ("in the previous two weeks", "2026-11-07/2026-11-21"),
    ("the Monday before last", "2026-11-09"),
    ("the Friday after next", "2026-12-04"),
    ("the summer before last", "2025-06-01/2025-08-31"),
    ("the winter after next", "2027-12-01/2028-02-29"),
    ("two summers ago", "2025-06-01/2025-08-31"),
    ("the night before last", "2026-11-19"),
    ("two nights ago", "2026-11-19"),
    ("Where was I Friday night?", "2026-11-20"),
    ("a year ago today", "2025-11-21"),
    ("a week ago yesterday", "2026-11-13"),
    ("a week ago on Monday", "2026-11-09"),
    ("a fortnight ago on Friday", "2026-11-06"),
    ("on Friday two weeks ago", "2026-11-06"),
    ("on Monday the 9th", "2026-11-09"),
    ("a week from today", "2026-11-28"),
    ("two weeks from Monday", "2026-12-07"),
    ("a week from Monday to Friday", "2026-11-16/2026-11-20"),
    ("two years ago in March", "2024-03-01/2024-03-31"),
    ("in March 2 years ago", "2024-03-01/2024-03-31"),
    ("in the summer a year ago", "2025-06-01/2025-08-31"),
    ("this coming Friday", "2026-11-27"),
    ("the coming Saturday", "2026-11-28"),
    ("the coming weekend", "2026-11-21/2026-11-22"),
    ("in the coming weeks", "2026-11-21/2026-12-12"),
    ("the upcoming summer", "2027-06-01/2027-08-31"),
    ("on Friday of the upcoming week", "2026-11-27"),
    ("the 3rd of the upcoming month", "2026-12-03"),
    ("at the end of the upcoming month", "2026-12-22/2026-12-31"),
    ("the upcoming year in March", "2027-03-01/2027-03-31"),
    ("the previous evening", "2026-11-20"),
    ("last Fri", "2026-11-20"),
    ("what did I say on Wed?", "2026-11-18"),
    ("from Mon to Fri", "2026-11-16/2026-11-20"),
    ("two weeks before 11 August 2023", "2023-07-25/2023-07-31"),
    ("in the week before 16 November 2023", "2023-11-09/2023-11-15"),
    ("the week after 5 May", "2026-05-06/2026-05-12 yearly"),
    ("on the Sunday before October 25, 2022", "2022-10-23"),
    ("last weekend before April 10, 2023", "2023-04-08/2023-04-09"),
    ("the day after 5 May 2024", "2024-05-06"),
    ("on December 1,2023", "2023-12-01"),
    ("the Monday before last week", "2026-11-02"),
    ("the day before last Friday", "2026-11-19"),
    ("the weekend before last week", "2026-11-07/2026-11-08"),
    ("the year before last summer", "2025-06-01/2026-05-31"),
    ("the day after last week", "2026-11-16"),
    ("around 2020", "2020-01-01/2020-12-31"),
    ("around the weekend", "2026-11-21/2026-11-22"),
    ("around the 14th", "2026-11-14"),
    ("in the 2010s", "2010-01-01/2019-12-31"),
    ("in the early 2020s", "2020-01-01/2023-04-30"),
    ("in the mid-2010s", "2013-05-01/2016-08-31"),
    ("in the late 1990s", "1996-09-01/1999-12-31"),
    ("at the end of March", "2026-03-22/2026-03-31 yearly"),
)
RUSSIAN: Final = (
    ("Что я говорил сегодня?", "2026-11-21"),
    ("о чём говорили вчера", "2026-11-20"),
    ("Что было позавчера?", "2026-11-19"),
    ("что мне делать завтра", "2026-11-22"),
    ("планы на послезавтра", "2026-11-23"),
    ("О чём мы говорили прошлой ночью?", "2026-11-20"),
    ("что я сказал сегодня утром", "2026-11-21"),
    ("три дня назад я болел", "2026-11-18"),
    ("Где я был 10 дней назад?", "2026-11-11"),
    ("неделю назад", "2026-11-11/2026-11-17"),
    ("две недели назад", "2026-11-04/2026-11-10"),
    ("пару недель назад", "2026-11-04/2026-11-10"),
    ("несколько дней назад", "2026-11-18"),
    ("месяц назад", "2026-10-06/2026-11-05"),
    ("три месяца назад", "2026-08-06/2026-09-05"),
    ("год назад", "2025-05-23/2026-05-22"),
    ("два года назад", "2024-05-23/2025-05-22"),
    ("год тому назад", "2025-05-23/2026-05-22"),
    ("20 дек. 2024", "2024-12-20"),
    ("полгода назад", "2026-05-06/2026-06-05"),
    ("полторы недели назад", "2026-11-08/2026-11-14"),
    ("полтора месяца назад", "2026-09-21/2026-10-21"),
    ("месяца полтора назад", "2026-09-21/2026-10-21"),
    ("два с половиной года назад", "2023-11-23/2024-11-21"),
    ("через полторы недели", "2026-11-28/2026-12-04"),
    ("5 часов назад", "2026-11-21"),
    ("дня три назад", "2026-11-18"),
    ("через 3 дня", "2026-11-24"),
    ("через несколько дней", "2026-11-24"),
    ("Что я буду делать через неделю?", "2026-11-25/2026-12-01"),
    ("через пару недель", "2026-12-02/2026-12-08"),
    ("через месяц", "2026-12-06/2027-01-05"),
    ("через полгода", "2027-05-06/2027-06-05"),
    ("через год", "2027-05-23/2028-05-21"),
    ("что я делал на прошлой неделе", "2026-11-09/2026-11-15"),
    ("на этой неделе", "2026-11-16/2026-11-22"),
    ("на следующей неделе", "2026-11-23/2026-11-29"),
    ("на позапрошлой неделе", "2026-11-02/2026-11-08"),
    ("что я делал в прошлом месяце", "2026-10-01/2026-10-31"),
    ("в этом месяце", "2026-11-01/2026-11-30"),
    ("в будущем месяце", "2026-12-01/2026-12-31"),
    ("в прошлом году", "2025-01-01/2025-12-31"),
    ("в текущем году", "2026-01-01/2026-12-31"),
    ("в позапрошлом году", "2024-01-01/2024-12-31"),
    ("в позапрошлом месяце", "2026-09-01/2026-09-30"),
    ("в позапрошлые выходные", "2026-11-07/2026-11-08"),
    ("в начале позапрошлого месяца", "2026-09-01/2026-09-10"),
    ("в первую неделю позапрошлого года", "2024-01-01/2024-01-07"),
    ("позапрошлым летом", "2025-06-01/2025-08-31"),
    ("в пятницу на позапрошлой неделе", "2026-11-06"),
    ("в прошлые выходные", "2026-11-14/2026-11-15"),
    ("в эти выходные", "2026-11-21/2026-11-22"),
    ("Где мы были на выходных?", "2026-11-21/2026-11-22"),
    ("Что мы решили в понедельник?", "2026-11-16"),
    ("что было во вторник", "2026-11-17"),
    ("в прошлую пятницу", "2026-11-20"),
    ("в прошлую субботу", "2026-11-14"),
    ("в последнюю субботу", "2026-11-14"),
    ("две субботы назад", "2026-11-07"),
    ("пять пятниц назад", "2026-10-23"),
    ("в последние выходные октября", "2026-10-31/2026-11-01"),
    ("в первый понедельник ноября", "2026-11-02"),
    ("в этот понедельник", "2026-11-16"),
    ("в следующую пятницу", "2026-11-27"),
    ("во вторник на прошлой неделе", "2026-11-10"),
    ("на прошлой неделе во вторник", "2026-11-10"),
    ("за последние две недели", "2026-11-07/2026-11-21"),
    ("за последние полтора месяца", "2026-10-06/2026-11-21"),
    ("за последний месяц", "2026-10-21/2026-11-21"),
    ("за последние 3 дня", "2026-11-18/2026-11-21"),
    ("в последние дни", "2026-11-18/2026-11-21"),
    ("следующие две недели", "2026-11-21/2026-12-05"),
    ("где я был в марте", "2026-03-01/2026-03-31 yearly"),
    ("Куда мы ездили в мае?", "2026-05-01/2026-05-31 yearly"),
    ("в прошлом марте", "2026-03-01/2026-03-31"),
    ("в прошлом декабре", "2025-12-01/2025-12-31"),
    ("в следующем январе", "2027-01-01/2027-01-31"),
    ("в марте прошлого года", "2025-03-01/2025-03-31"),
    ("в мае этого года", "2026-05-01/2026-05-31"),
    ("в прошлом году летом", "2025-06-01/2025-08-31"),
    ("Что купили в сентябре 2024?", "2024-09-01/2024-09-30"),
    ("март 2024", "2024-03-01/2024-03-31"),
    ("в 2023 году", "2023-01-01/2023-12-31"),
    ("в 2023-м", "2023-01-01/2023-12-31"),
    ("летом 2023-го", "2023-06-01/2023-08-31"),
    ("Что было в 2023г.?", "2023-01-01/2023-12-31"),
    ("17 марта 2023г.", "2023-03-17"),
    ("с 2019 года", "2019-01-01/2026-11-21"),
    ("со вторника", "2026-11-17/2026-11-21"),
    ("с прошлой недели", "2026-11-09/2026-11-21"),
    ("с начала мая", "2026-05-01/2026-11-21"),
    ("с выходных", "2026-11-21/2026-11-22"),
    ("с прошлых выходных", "2026-11-14/2026-11-21"),
    ("с начала недели", "2026-11-16/2026-11-21"),
    ("с начала мая по конец июня", "2026-05-01/2026-06-30 yearly"),
    ("за 2021 год", "2021-01-01/2021-12-31"),
    ("Что было 8 мая 2023 года?", "2023-05-08"),
    ("3 мая", "2026-05-03 yearly"),
    ("3-го мая", "2026-05-03 yearly"),
    ("третьего мая 2024", "2024-05-03"),
    ("14 числа этого месяца", "2026-11-14"),
    ("третьего числа прошлого месяца", "2026-10-03"),
    ("31 числа этого месяца", "2026-11-01/2026-11-30"),
    ("двадцать первого июня", "2026-06-21 yearly"),
    ("29 февраля", "2024-02-29 yearly"),
    ("в пятницу, 6 марта 2026", "2026-03-06"),
    ("12 мая прошлого года", "2025-05-12"),
    ("21.01.2024", "2024-01-21"),
    ("21.01.24", "2024-01-21"),
    ("2024-01-21", "2024-01-21"),
    ("в первую неделю 2024 года", "2024-01-01/2024-01-07"),
    ("в последнюю неделю марта 2024", "2024-03-25/2024-03-31"),
    ("в первую неделю этого месяца", "2026-11-01/2026-11-07"),
    ("на второй неделе мая", "2026-05-08/2026-05-14 yearly"),
    ("последний день февраля 2024", "2024-02-29"),
    ("в первой половине 2025 года", "2025-01-01/2025-06-30"),
    ("в начале года", "2026-01-01/2026-04-30"),
    ("в конце прошлого месяца", "2026-10-22/2026-10-31"),
    ("в начале марта 2025", "2025-03-01/2025-03-10"),
    ("в середине июня 2024", "2024-06-11/2024-06-20"),
    ("в конце 2023 года", "2023-09-01/2023-12-31"),
    ("в конце недели", "2026-11-21/2026-11-22"),
    ("прошлым летом", "2026-06-01/2026-08-31"),
    ("этой зимой", "2026-12-01/2027-02-28"),
    ("летом 2023", "2023-06-01/2023-08-31"),
    ("зимой 2023 года", "2022-12-01/2023-02-28, 2023-12-01/2024-02-29"),
    ("зимой 2023/24", "2023-12-01/2024-02-29"),
    ("осенью", "2026-09-01/2026-11-30 yearly"),
    ("летом прошлого года", "2025-06-01/2025-08-31"),
    ("за лето", "2026-06-01/2026-08-31 yearly"),
    ("между мартом и маем", "2026-03-01/2026-05-31 yearly"),
    ("между 3 и 10 мая 2024", "2024-05-03/2024-05-10"),
    ("с 3 по 10 мая", "2026-05-03/2026-05-10 yearly"),
    ("3–10 мая 2024 года", "2024-05-03/2024-05-10"),
    ("между 2020 и 2022 годом", "2020-01-01/2022-12-31"),
    ("Куда я в 2020-м ездил?", "2020-01-01/2020-12-31"),
    ("В 2019-м Анна переехала", "2019-01-01/2019-12-31"),
    ("летом 2020-го года", "2020-06-01/2020-08-31"),
    ("в начале 2020-го", "2020-01-01/2020-04-30"),
    ("с 2020 по 2022 год", "2020-01-01/2022-12-31"),
    ("с ноября по февраль", "2026-11-01/2027-02-28 yearly"),
    ("с марта 2024 по май", "2024-03-01/2024-05-31"),
    ("с понедельника по среду", "2026-11-16/2026-11-18"),
    ("с 28 декабря 2024 по 3 января 2025", "2024-12-28/2025-01-03"),
    ("Что я делал в марте и в июле 2024?", "2024-03-01/2024-03-31, 2024-07-01/2024-07-31"),
    ("О чём мы говорили на днях?", "2026-11-14/2026-11-20"),
    ("Что было 14 числа?", "2026-11-14"),
    ("31 числа", "2026-10-31"),
    ("двадцать первого числа", "2026-10-21"),
    ("с 14 числа", "2026-11-14/2026-11-21"),
    ("с 10 до 14 числа", "2026-11-10/2026-11-14"),
    ("с 10 по 14 числа прошлого месяца", "2026-10-10/2026-10-14"),
    ("14 числа мая", "2026-05-14 yearly"),
    ("в позапрошлый понедельник", "2026-11-09"),
    ("две недели назад в пятницу", "2026-11-06"),
    ("в субботу две недели назад", "2026-11-07"),
    ("в понедельник 9 числа", "2026-11-09"),
    ("в течение последнего месяца", "2026-10-21/2026-11-21"),
    ("на вчерашней встрече", "2026-11-20"),
    ("со вчерашнего дня", "2026-11-20/2026-11-21"),
    ("год назад сегодня", "2025-11-21"),
    ("два года назад в марте", "2024-03-01/2024-03-31"),
    ("летом год назад", "2025-06-01/2025-08-31"),
    ("два лета назад", "2025-06-01/2025-08-31"),
    ("две ночи назад", "2026-11-19"),
    ("полчаса назад", "2026-11-21"),
    ("недельку назад", "2026-11-11/2026-11-17"),
    ("с неделю назад", "2026-11-11/2026-11-17"),
    ("около месяца назад", "2026-10-06/2026-11-05"),
    ("больше года назад", "2025-05-23/2026-05-22"),
    ("за последние полгода", "2026-05-21/2026-11-21"),
    ("за прошедшую неделю", "2026-11-14/2026-11-21"),
    ("на прошедших выходных", "2026-11-14/2026-11-15"),
    ("в ближайший вторник", "2026-11-24"),
    ("в ближайшие выходные", "2026-11-21/2026-11-22"),
    ("в ближайшие две недели", "2026-11-21/2026-12-05"),
    ("что было в чт", "2026-11-19"),
    ("с пн по пт", "2026-11-16/2026-11-20"),
    ("за три дня до 5 мая 2024", "2024-05-02"),
    ("через два дня после 5 мая 2024", "2024-05-07"),
    ("в понедельник перед 5 мая 2024", "2024-04-29"),
    ("с 8 Марта", "2026-03-08/2026-11-21"),
    ("в конце Марта", "2026-03-22/2026-03-31 yearly"),
    ("Что было в Марте?", "2026-03-01/2026-03-31 yearly"),
    ("в последних днях мая", "2026-05-31 yearly"),
    ("о последних днях", "2026-11-18/2026-11-21"),
    ("около пятницы", "2026-11-20"),
    ("в понедельник перед прошлой неделей", "2026-11-02"),
    ("около 2020", "2020-01-01/2020-12-31"),
    ("в 2010-х", "2010-01-01/2019-12-31"),
    ("в начале 2000-х", "2000-01-01/2003-04-30"),
    ("в конце 2010-х годов", "2016-09-01/2019-12-31"),
    ("в начале марта", "2026-03-01/2026-03-10 yearly"),
    ("в середине июня", "2026-06-11/2026-06-20 yearly"),
    ("на 8 марта", "2026-03-08 yearly"),
)
FUTURE: Final = (
    ("What am I doing on Friday?", "2026-11-27"),
    ("Who's coming on Sunday?", "2026-11-22"),
    ("Where are Anna and Tom eating on Friday?", "2026-11-27"),
    ("What are my plans for Friday?", "2026-11-27"),
    ("What will I do on Wed?", "2026-11-25"),
    ("Am I free on Monday?", "2026-11-23"),
    ("Do I have anything on Tuesday?", "2026-11-24"),
    ("What do I have to do by Friday?", "2026-11-27"),
    ("What am I doing on the 14th?", "2026-12-14"),
    ("What am I doing on the 21st?", "2026-11-21"),
    ("Куда мы идём в субботу?", "2026-11-28"),
    ("Кто придёт в субботу?", "2026-11-28"),
    ("планы на пятницу", "2026-11-27"),
    ("Что у меня в пятницу?", "2026-11-27"),
    ("Что я делаю 25 числа?", "2026-11-25"),
)
"""Questions about the future."""

PAST: Final = (
    ("What did I do on Friday?", "2026-11-20"),
    ("What was I doing on Friday?", "2026-11-20"),
    ("What did Will say on Friday?", "2026-11-20"),
    ("Who told me about the plan on Friday?", "2026-11-20"),
    ("What should I have done on Friday?", "2026-11-20"),
    ("Which painting is the one Anna showed me on Friday?", "2026-11-20"),
    ("Is the wedding photo of Friday here?", "2026-11-20"),
    ("Do I have a photo from Friday?", "2026-11-20"),
    ("How am I feeling since Friday?", "2026-11-20/2026-11-21"),
    ("Am I working from Monday to Wednesday?", "2026-11-16/2026-11-18"),
    ("Am I working between Monday and Friday?", "2026-11-16/2026-11-20"),
    ("Что я делал в пятницу?", "2026-11-20"),
    ("Что надо было сделать в пятницу?", "2026-11-20"),
    ("Что у меня болело в пятницу?", "2026-11-20"),
    ("Помнишь встречу в пятницу?", "2026-11-20"),
    ("Что я знаю о пятнице?", "2026-11-20"),
    ("Что я расскажу о пятнице?", "2026-11-20"),
    ("What am I doing? " * 40 + "on Friday", "2026-11-20"),
)
"""Questions about the past, and texts that are not read as questions about the future."""

FALSE_FRIENDS: Final = (
    "May I ask something?",
    "Hi! May I ask something?",
    "What may Anna like? They march on.",
    "12 may be enough",
    "What does April like?",
    "What did Jan say?",
    "a letter from Jan",
    "the week of the wedding",
    "Who is interested in Jan?",
    "Is Anna interested in May?",
    "Who is in Jan's car?",
    "a week back pain",
    "I had two days back then",
    "on the other hand",
    "the other days",
    "the other day of the festival",
    "on the second",
    "on the 2nd floor",
    "the 14th floor",
    "a day from home",
    "Who sat on a chair in the sun?",
    "What did we pay in 3 nights?",
    "every Friday night",
    "at the last minute",
    "Where is she coming from?",
    "Что сказала Марта?",
    "Марта приехала",
    "письмо Марте",
    "большие числа",
    "14 числа каждого месяца",
    "0 числа",
    "на днях рождения",
    "сколько это в днях",
    "через неделю после свадьбы",
    "больше не болит",
    "на 2000 больше",
    "ближайшее метро",
    "по пт",
    "They want to march to Rome",
    "this may help",
    "Who is the last on the list?",
    "What is my last name?",
    "wait a second",
    "the second question",
    "I did fall in love",
    "a hot spring",
    "I like to fall asleep",
    "My 12 cats and 3.5 kg of fish",
    "It costs 2000 euros",
    "a crowd of 2000 people",
    "room 2023",
    "Python 3.11.12",
    "ping 8.8.8.8",
    "call at 10:30",
    "every Monday",
    "what do I do on Mondays",
    "what do I do on weekends",
    "two weekends in a row",
    "every first Monday of the month",
    "two Fridays",
    "after two weeks back at work",
    "the first week back",
    "Black Friday deals",
    "Sunday school",
    "in the end",
    "the first day at work",
    "I am 30 years old",
    "How many days are in it?",
    "How many days are in a year?",
    "I swim three times in a week",
    "What did I learn in a month?",
    "Rome was not built in a day",
    "in two words",
    "bake it in 30 minutes",
    "the next step",
    "the day we met",
    "what happened in 99.99.9999",
    "2023-13-45",
    "весна красна",
    "люблю лето",
    "среда разработки",
    "в рабочей среде",
    "Мне 30 лет",
    "через дорогу",
    "день рождения",
    "в последний день рождения",
    "в конце концов",
    "начало игры",
    "по понедельникам",
    "каждый понедельник",
    "по выходным",
    "за 2000 рублей",
    "в 2000 км",
    "последний раз",
    "прошлый раз",
    "первый раз",
    "второй вопрос",
    "на неделю",
    "сколько раз в неделю",
    "сто лет",
    "полгода",
    "на полторы недели",
    "полтора года",
    "дважды два",
    "моя фамилия Маев",
    "назад",
    "вперёд и назад",
    "around 2000",
    "around 2020 people",
    "больше 2020",
    "walk around April",
    "the music of the 1980s",
)


def show_periods(text: str, now: datetime = SATURDAY) -> str:
    """Return the periods of a text as first and last day, as in `2026-11-16/2026-11-22`."""
    return ", ".join(_show_period(period) for period in find_periods(text, now))


def _show_period(period: QueryPeriod) -> str:
    assert period.start.timetz() == period.end.timetz()
    first, last = period.start.date(), period.end.date() - timedelta(days=1)
    shown = f"{first}" if first == last else f"{first}/{last}"
    return f"{shown} yearly" if period.is_yearly else shown


@pytest.mark.parametrize(("text", "shown"), ENGLISH)
def test_english_phrase_names_period(text: str, shown: str) -> None:
    assert show_periods(text) == shown


@pytest.mark.parametrize(("text", "shown"), RUSSIAN)
def test_russian_phrase_names_period(text: str, shown: str) -> None:
    assert show_periods(text) == shown


@pytest.mark.parametrize(("text", "shown"), [*FUTURE, *PAST])
def test_weekday_is_the_coming_one_in_a_question_about_the_future(text: str, shown: str) -> None:
    assert show_periods(text) == shown


@pytest.mark.parametrize("text", FALSE_FRIENDS)
def test_other_words_name_no_period(text: str) -> None:
    assert find_periods(text, SATURDAY) == ()


@pytest.mark.parametrize(
    ("text", "now", "shown"),
    [
        ("a month ago", datetime(2026, 3, 31, tzinfo=UTC), "2026-02-13/2026-03-15"),
        ("last month", datetime(2026, 1, 15, tzinfo=UTC), "2025-12-01/2025-12-31"),
        ("last week", datetime(2026, 1, 1, tzinfo=UTC), "2025-12-22/2025-12-28"),
        ("last March", datetime(2026, 3, 15, tzinfo=UTC), "2025-03-01/2025-03-31"),
        ("last winter", datetime(2026, 1, 15, tzinfo=UTC), "2024-12-01/2025-02-28"),
        ("last winter", datetime(2026, 3, 15, tzinfo=UTC), "2025-12-01/2026-02-28"),
        ("this winter", datetime(2026, 1, 15, tzinfo=UTC), "2025-12-01/2026-02-28"),
        ("at the weekend", datetime(2026, 11, 23, tzinfo=UTC), "2026-11-21/2026-11-22"),
        ("on Monday", datetime(2026, 11, 23, tzinfo=UTC), "2026-11-16"),
        ("Am I free on Monday?", datetime(2026, 11, 23, tzinfo=UTC), "2026-11-30"),
        ("Where are we going at the weekend?", datetime(2026, 11, 23, tzinfo=UTC), "2026-11-28/2026-11-29"),
        ("куда едем на выходных", datetime(2026, 11, 22, tzinfo=UTC), "2026-11-21/2026-11-22"),
        ("the coming weekend", datetime(2026, 11, 22, tzinfo=UTC), "2026-11-28/2026-11-29"),
        ("this coming Friday", datetime(2026, 11, 24, tzinfo=UTC), "2026-11-27"),
        ("14 числа", datetime(2026, 11, 14, tzinfo=UTC), "2026-10-14"),
        ("31 числа", datetime(2026, 3, 15, tzinfo=UTC), "2026-01-31"),
        ("two summers ago", datetime(2026, 7, 15, tzinfo=UTC), "2024-06-01/2024-08-31"),
        ("from Monday to Wednesday", datetime(2026, 11, 24, tzinfo=UTC), "2026-11-23/2026-11-25"),
        ("с 28 декабря по 3 января 2025", SATURDAY, "2024-12-28/2025-01-03"),
        ("two hours ago", datetime(2026, 11, 21, 1, tzinfo=UTC), "2026-11-20"),
        ("since December", datetime(2026, 1, 15, tzinfo=UTC), "2025-12-01/2026-01-15"),
        ("since 29 February", datetime(2028, 1, 15, tzinfo=UTC), "2028-02-29 yearly"),
        ("since yesterday", datetime(9999, 12, 31, tzinfo=UTC), "9999-12-30"),
    ],
)
def test_period_depends_on_the_day_of_the_query(text: str, now: datetime, shown: str) -> None:
    assert show_periods(text, now) == shown


def test_days_begin_in_the_zone_of_now() -> None:
    moscow = ZoneInfo("Europe/Moscow")
    (period,) = find_periods("вчера", datetime(2026, 11, 21, 1, tzinfo=moscow))

    assert period.start == datetime(2026, 11, 19, 21, tzinfo=UTC)
    assert period.end == datetime(2026, 11, 20, 21, tzinfo=UTC)


def measure(text: str, moment: datetime) -> float:
    (period,) = find_periods(text, SATURDAY)
    return period.measure_closeness(moment)


def test_closeness_fades_within_days_of_a_day() -> None:
    assert measure("2024-05-08", datetime(2024, 5, 8, tzinfo=UTC)) == 1
    assert measure("2024-05-08", datetime(2024, 5, 8, 23, 59, tzinfo=UTC)) == 1
    assert measure("2024-05-08", datetime(2024, 5, 12, tzinfo=UTC)) == pytest.approx(0.368, abs=0.001)
    assert measure("2024-05-08", datetime(2024, 5, 5, tzinfo=UTC)) == pytest.approx(0.368, abs=0.001)
    assert measure("2024-05-08", datetime(2024, 6, 8, tzinfo=UTC)) == 0


def test_closeness_fades_slower_for_a_longer_period() -> None:
    moment = datetime(2024, 8, 1, tzinfo=UTC) + timedelta(days=15.5)
    assert measure("July 2024", moment) == pytest.approx(0.368, abs=0.001)
    assert measure("31 July 2024", moment) == 0
    assert measure("2023-2024", datetime(2025, 6, 1, tzinfo=UTC)) > 0.6


def test_date_without_year_recurs_in_every_year() -> None:
    for year in (1999, 2024, 2026, 2031):
        assert measure("8 May", datetime(year, 5, 8, 12, tzinfo=UTC)) == 1
        assert measure("28 февраля", datetime(year, 2, 28, 23, tzinfo=UTC)) == 1
        assert measure("в феврале", datetime(year, 3, 2, tzinfo=UTC)) < 1
        assert measure("зимой", datetime(year, 1, 15, tzinfo=UTC)) == 1
        assert measure("1 January", datetime(year, 12, 31, tzinfo=UTC)) > 0.7
    assert measure("8 May 2024", datetime(2023, 5, 8, tzinfo=UTC)) == 0


def test_leap_day_recurs_in_leap_years() -> None:
    assert measure("29 February", datetime(2028, 2, 29, 12, tzinfo=UTC)) == 1
    assert measure("29 February", datetime(2026, 3, 1, 12, tzinfo=UTC)) == 0


def test_closeness_is_measured_at_the_ends_of_the_calendar() -> None:
    for year in (1, 9999):
        assert measure("in winter", datetime(year, 7, 1, tzinfo=UTC)) < 1


def test_28_february_of_a_leap_year_recurs_in_other_years() -> None:
    (period,) = find_periods("28 February", datetime(2028, 6, 1, tzinfo=UTC))
    assert period.measure_closeness(datetime(2026, 2, 28, 12, tzinfo=UTC)) == 1


FRAGMENTS: Final = (
    *(word for text, _ in (*ENGLISH, *RUSSIAN, *FUTURE) for word in text.split()),
    *(
        "9999",
        "0001-01-01",
        "31.12.9999",
        "999 years",
        "лет назад",
        "-",
        "—",
        ",",
        "2000/01",
        "'",
        "³",
        "٣",
        "İ",
    ),
)
MOMENTS: Final = st.datetimes(timezones=st.just(UTC))


@given(st.lists(st.sampled_from(FRAGMENTS), max_size=30).map(" ".join), MOMENTS, MOMENTS)
def test_any_words_name_ordered_periods(text: str, now: datetime, moment: datetime) -> None:
    for period in find_periods(text, now):
        assert period.start < period.end
        assert 0 <= period.measure_closeness(moment) <= 1
        if period.start.year > 1:
            assert period.measure_closeness(period.start) == 1


@given(st.text(max_size=200))
def test_any_text_can_be_searched(text: str) -> None:
    assert len(find_periods(text, SATURDAY)) <= len(text)


@pytest.mark.parametrize(
    "fragment",
    [
        "last ",
        "1-",
        "2024-",
        "first week of ",
        "week before ",
        "1 year ago in ",
        "with ",
        "3 мая по ",
        "between 2020 and ",
        "a ",
        "1.",
        "9",
        "March, ",
        "on Friday, ",
        "в среду пойдём ",
    ],
)
def test_long_text_takes_bounded_time(fragment: str) -> None:
    text = (fragment * 10_000)[:10_000]
    began = time.thread_time()
    find_periods(text, SATURDAY)
    # Forty times the usual time; exponential backtracking takes longer.
    assert time.thread_time() - began < 1.0


def test_usual_query_takes_little_work() -> None:
    for text in [text for text, _ in (*ENGLISH, *RUSSIAN, *FUTURE)]:
        # Twice the number of calls for the most complex of the phrases.
        assert count_calls(partial(find_periods, text, SATURDAY)) < 1000, text
