"""Near-duplicates among the hits of a search."""

import pytest

from mnemon_consumers.retrieve.search.duplicates import list_distinct_items


def distinct(*texts: str, limit: int = 100) -> list[str]:
    return list_distinct_items(texts, lambda text: (None, text), limit)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("I like green tea.", "i like  GREEN tea!"),
        ("The user likes dogs", "User likes the dog"),
        ("I'm not fond of tea", "I am not fond of tea"),
        ("Yesterday I walked to the lake.", "I walked to the lake yesterday"),
        ("Я люблю зелёный чай.", "я люблю зеленый чай"),
        ("Пользователь любит собак", "Пользователь очень любит собаку"),
        ("We need a bed and a hundred seeds", "We need beds and a hundred seeds"),
        ("She planned a trip and baked a cake", "She baked a cake, and planned a trip!"),
        ("Вчера я купил хлеб", "Вчера я купила хлеб"),
        ("I like tea", "I like tea!"),
        ("On Monday I fly to Rome", "I fly to Rome on Monday"),
        ("Yesterday, I walked to the lake", "I walked to the lake yesterday"),
        ("I walked to the lake, yesterday", "Yesterday I walked to the lake"),
        ("From 9 to 5 I work in a bank", "I work in a bank from 9 to 5"),
        ("В понедельник лечу в Рим", "Лечу в Рим в понедельник"),
        ("С 9 до 17 работаю в банке", "Работаю в банке с 9 до 17."),
        ("Went home at 5 on Monday", "Went home on Monday at 5"),
        ("Works from 9 to 5 on Monday", "On Monday works from 9 to 5"),
        ("Went home at 5 on June 6", "On June 6 went home at 5"),
        ("Went home at 5 yesterday", "Yesterday at 5 went home"),
        ("Ушёл домой в понедельник после 17", "Ушёл домой после 17 в понедельник"),
        ("I bought 3 apples and sold 5 pears", "I sold 5 pears and bought 3 apples"),
        ("Turn off the TV", "Turn the TV off"),
        ("He gave up tea", "He gave tea up"),
        ("Turned the TV on at 5", "At 5 turned on the TV"),
        ("Turned off the TV on Monday", "On Monday turned the TV off"),
        ("Mail is a@b.com.", "mail is A@b.com"),
        ("Учит немецкий", "учит немецкий!"),
        ("👍", "👍"),
    ],
)
def test_texts_that_say_the_same_are_listed_once(text: str, other: str) -> None:
    assert distinct(text, other) == [text]


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("I like tea", "I don't like tea"),
        ("Я люблю чай", "Я не люблю чай"),
        ("He is a teacher", "He was a teacher"),
        ("I love coffee", "I loved coffee"),
        ("We plan a trip to Rome", "We planned a trip to Rome"),
        ("She tries to need less", "She tried to need less"),
        ("I need a car", "I needed a car"),
        ("I work in a bank", "I will work in a bank"),
        ("I plan a trip", "I'll plan a trip"),
        ("Я люблю кофе", "Я любил кофе"),
        ("Мы планируем поездку в Рим", "Мы планировали поездку в Рим"),
        ("Я работаю в банке", "Я работал в банке"),
        ("Пользователь говорит по-немецки", "Пользователь говорил по-немецки"),
        ("Я играю в шахматы", "Я буду играть в шахматы"),
        ("You like tea", "Do you like tea?"),
        ("My mother lives in Rome", "Her mother lives in Rome"),
        ("Anna loves Boris", "Boris loves Anna"),
        ("Likes tea, not coffee", "Likes coffee, not tea"),
        ("I prefer trains to planes", "I prefer planes to trains"),
        ("We moved from London to Paris", "We moved from Paris to London"),
        ("My brother owes my sister money", "My sister owes my brother money"),
        ("I sold my car and bought a bike", "I bought my car and sold a bike"),
        ("Не сдал экзамен, сдал зачёт", "Сдал экзамен, не сдал зачёт"),
        ("Мама позвонила папе", "Папа позвонил маме"),
        ("Run 3 times in 5 days", "Run 5 times in 3 days"),
        ("It weighs 1.5 kg", "It weighs 5.1 kg"),
        ("He writes C", "He writes C++"),
        ("Great 👍", "Great 👎"),
        ("Дом у озера", "Дом за озером"),
        ("Flies from Rome to Paris", "Flies to Rome from Paris"),
        ("Gave the book to Anna for Boris", "Gave the book for Anna to Boris"),
        ("Likes tea but not coffee", "Likes not tea but coffee"),
        ("Drinks no tea nor coffee with milk", "Drinks tea nor coffee with no milk"),
        ("Пьёт чай без сахара", "Пьёт чай с сахаром"),
        ("Пьёт чай с сахаром без лимона", "Пьёт чай без сахара с лимоном"),
        ("Летит из Рима к Парижу", "Летит к Риму из Парижа"),
        ("Ест ни мясо, а рыбу", "Ест мясо, а ни рыбу"),
        ("Works from 9 to 5", "Works from 5 to 9"),
        ("Works from 9 sleeps at 5", "Works at 5 sleeps from 9"),
        ("Works from 9 to 5", "Works to 9 from 5"),
        ("Работает с 9 до 17", "Работает до 9 с 17"),
        ("Works from Monday to Friday", "Works from Friday to Monday"),
        ("Works Monday to Friday", "Works Friday to Monday"),
        ("Работает с мая по июнь", "Работает с июня по май"),
        ("Works on Monday, not on Tuesday", "Works on Tuesday, not on Monday"),
        ("Was free before March and after May", "Was free before May and after March"),
        ("Приехал до обеда уехал после ужина", "Приехал после обеда уехал до ужина"),
        ("Slept last week, worked this week", "Worked last week, slept this week"),
        ("Today I bought a car, yesterday I sold it", "Yesterday I bought a car, today I sold it"),
        ("В мае был в Риме, в июне в Париже", "В июне был в Риме, в мае в Париже"),
        ("I bought 3 apples and sold 5 pears", "I sold 3 pears and bought 5 apples"),
        ("On Monday works from 9 to 5", "Works from 5 to 9 on Monday"),
        ("Gym at 5 then dinner at 8", "Gym at 8 then dinner at 5"),
        ("Slept on Monday worked on Friday", "Worked on Monday slept on Friday"),
        ("Vacation 5 May - 6 June", "Vacation 5 June - 6 May"),
        ("He has 3 dogs 5 cats", "He has 5 dogs 3 cats"),
        ("The heating is on, the light is off", "The light is on, the heating is off"),
        ("On the team, off the list", "Off the team, on the list"),
        ("On the table is a lamp", "The table is on a lamp"),
        ("Turned on the TV then off the radio", "Turned off the TV then on the radio"),
        ("Mail is a@b.com", "Mail is b@a.com"),
        ("Mail is a@b.com, not b@a.com", "Mail is b@a.com, not a@b.com"),
        ("Учу немецкий", "Учит немецкий"),
        ("Учу немецкий", "Учим немецкий"),
        ("Учил немецкий", "Учили немецкий"),
        ("Учить немецкий", "Учит немецкий"),
        ("Er ist schon da", "Er ist schön da"),
        ("Feliz año nuevo", "Feliz ano nuevo"),
        ("كتبت رسالة", "كتب رسالة"),
        ("معلم في المدرسة", "معلمة في المدرسة"),
    ],
)
def test_texts_that_say_something_else_are_kept(text: str, other: str) -> None:
    assert distinct(text, other) == [text, other]


def test_limit_is_filled_with_the_next_texts() -> None:
    assert distinct("tea", "Tea!", "milk", "juice", limit=2) == ["tea", "milk"]
