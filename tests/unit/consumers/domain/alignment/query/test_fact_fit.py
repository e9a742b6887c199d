"""The fact that a query names: never a fact that the query does not mean."""

import pytest

from mnemon_consumers.domain.alignment.query.fact_fit import choose_fact
from tests.support.facts.fact_queries import FACTS, FIT, HELD, UNFIT, QueryCase

LANGUAGES = sorted(FACTS)
SIZES = (1, 2, 3, 5, 8, 13, 21, 30)


def measure_fit(query: str, text: str) -> float:
    ranked = choose_fact(query, [("ar_001", text)]).ranked
    return ranked[0].fit if ranked else 0.0


def facts(language: str, number: int) -> list[tuple[str, str]]:
    return [(f"ar_{place:03}", text) for place, text in enumerate(FACTS[language][:number])]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("number", SIZES)
def test_query_without_a_fitting_fact_names_no_fact(language: str, number: int) -> None:
    assert len(set(UNFIT[language])) == 100
    named = {query: choose_fact(query, facts(language, number)).named for query in UNFIT[language]}
    assert {query: each for query, each in named.items() if each is not None} == {}


def test_a_query_that_fits_names_its_fact_or_has_it_first() -> None:
    cases = [(language, case) for each in (FIT, HELD) for language in LANGUAGES for case in each[language]]
    assert len(cases) == 50
    outcomes = [outcome(language, case) for language, case in cases]
    assert outcomes.count("wrong") == 0
    assert outcomes.count("named") >= 30
    assert outcomes.count("named") + outcomes.count("first") >= 45


def outcome(language: str, case: QueryCase) -> str:
    choice = choose_fact(case.query, facts(language, 30))
    meant = f"ar_{case.place:03}"
    if choice.named is not None:
        return "named" if choice.named == meant else "wrong"
    return "first" if choice.ranked and choice.ranked[0].id == meant else "missed"


@pytest.mark.parametrize(
    ("query", "meant", "other"),
    [
        ("no beer", "Does not like beer", "Likes dark beer"),
        ("from London", "Moved from London", "Moved to London"),
    ],
)
def test_one_word_with_negation_or_direction_names_a_fact(query: str, meant: str, other: str) -> None:
    assert choose_fact(query, [("a", meant), ("b", other)]).named == "a"


@pytest.mark.parametrize(
    ("query", "affirms", "denies"),
    [
        ("beer", "Likes dark beer", "Does not like beer"),
        ("кофе", "Любит чёрный кофе", "Не пьёт кофе вечером"),
        ("cat", "Has a cat named Tom", "Not allergic to cats"),
        ("мама", "Мама живёт в Твери", "Мама не ест рыбу"),
    ],
)
def test_one_word_in_several_facts_names_none_of_them(query: str, affirms: str, denies: str) -> None:
    assert choose_fact(query, [("a", affirms)]).named == "a"
    choice = choose_fact(query, [("a", affirms), ("b", denies)])
    assert choice.named is None
    assert [each.id for each in choice.ranked] == ["a", "b"]


@pytest.mark.parametrize(
    ("query", "one", "other"),
    [
        ("green tea", "Likes green tea with milk", "Likes green tea without sugar"),
        ("зелёный чай", "Любит зелёный чай с молоком", "Любит зелёный чай без сахара"),
        ("allergy to penicillin", "Has an allergy to penicillin", "Has no allergy to penicillin"),
        ("trip to Rome", "Plans a trip to Rome", "Wife plans a trip to Rome"),
        ("квартира в Туле", "Есть квартира в Туле", "Нет квартиры в Туле"),
        ("her piano lessons", "Takes piano lessons", "Daughter takes piano lessons"),
        ("tennis on Sundays", "Plays tennis on Sundays", "Mother plays tennis on Sundays"),
        ("теннис по воскресеньям", "Играет в теннис по воскресеньям", "Мама играет в теннис по воскресеньям"),
    ],
)
def test_several_words_in_two_facts_name_none_of_them(query: str, one: str, other: str) -> None:
    assert choose_fact(query, [("a", one)]).named == "a"
    choice = choose_fact(query, [("a", one), ("b", other)])
    assert choice.named is None
    assert [each.id for each in choice.ranked] == ["a", "b"]


@pytest.mark.parametrize(
    ("query", "fact"),
    [
        ("lives in Leeds", "Lives in Leeds, works at Google, is allergic to penicillin"),
        ("works at Google", "Works at Google and plays the cello"),
        ("аллергия на орехи", "Живёт в Туле, аллергия на орехи"),
    ],
)
def test_words_of_one_clause_do_not_name_a_fact_of_several(query: str, fact: str) -> None:
    choice = choose_fact(query, [("a", fact)])

    assert choice.named is None
    assert [each.id for each in choice.ranked] == ["a"]
    assert choose_fact(fact, [("a", fact)]).named == "a"


@pytest.mark.parametrize(
    ("query", "meant", "other"),
    [
        ("green tea without sugar", "Likes green tea without sugar", "Likes green tea with milk"),
        ("my tennis on Sundays", "Plays tennis on Sundays", "Mother plays tennis on Sundays"),
        ("моя аллергия на орехи", "Аллергия на орехи", "У мамы аллергия на орехи"),
        ("dont eat fish", "I don't eat fish on Fridays", "I eat fish on Fridays"),
    ],
)
def test_negation_or_owner_in_the_query_names_a_fact(query: str, meant: str, other: str) -> None:
    assert choose_fact(query, [("a", meant), ("b", other)]).named == "a"


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("my allergy to penicillin", "Is allergic to penicillin"),
        ("аллергия на пенициллин", "У пользователя аллергия на пенициллин"),
        ("собака Rex", "Собаку зовут Рекс"),
        ("Where do I live in Leeds?", "Lives in Leeds"),
        ("where Tom's office is", "Brother Tom has an office in York"),
        ("что я живу в Твери", "Живет в Твери"),
        ("Tom's office", "Brother is called Tom and has an office"),
        ("София и кошка", "У дочери Софии есть кошка"),
        ("the two daughters", "Has 2 daughters"),
        ("the 40 euros", "Owes Daniel 40 euros"),
    ],
)
def test_all_words_of_the_query_are_in_the_fact(query: str, text: str) -> None:
    assert measure_fit(query, text) == 1


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("the house rent", "Keeps bees behind the house"),
        ("аренда дома", "Держит пчёл за домом"),
        ("the 50 euros", "Owes Daniel 40 euros"),
        ("penicillin", "The user's mother is allergic to penicillin"),
        ("пенициллин", "У мамы аллергия на пенициллин"),
        ("my father in Porto", "The user's mother lives in Porto"),
        ("living in Leeds", "Brother lives in Leeds"),
        ("studying Portuguese", "Brother studies Portuguese"),
        ("living in Moscow", "Brother lives near Moscow"),
        ("жизнь в Твери", "Брат живёт в Твери"),
        ("that I smoke", "No longer smokes"),
        ("что я курю", "Больше не курит"),
        ("flight to Rome", "Flies from Rome"),
        ("рейс в Москву", "Рейс из Москвы"),
        ("everything", "Keeps bees"),
        ("", "Keeps bees"),
        ("!", "!"),
    ],
)
def test_contrary_or_missing_words_count_against_a_fact(query: str, text: str) -> None:
    assert measure_fit(query, text) <= 0.5
    assert choose_fact(query, [("ar_001", text)]).named is None


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("Martin", "Drinks martini with olives"),
        ("martin", "Drinks martini with olives"),
        ("Roman", "Visited Romania in May"),
        ("Anton", "Meets Antonio weekly"),
        ("anton", "Meets Antonio weekly"),
        ("Mary", "Meets Marie weekly"),
        ("Антон", "Встречается с Антонио"),
        ("Anton", "Встречается с Антонио"),
        ("Валентина", "Брата зовут Валентин"),
        ("Валентина", "Зовут Валентин"),
        ("валентина", "Зовут Валентин"),
        ("Valentin", "Зовут Валентина"),
        ("Евгений", "Сестру зовут Евгения"),
        ("Евгений", "Зовут Евгения"),
        ("Александр", "Дружит с Александрой"),
        ("मेरी बेटी डॉक्टर है", "मेरा बेटा डॉक्टर है"),
    ],
)
def test_a_name_is_no_other_name_and_no_other_word(query: str, text: str) -> None:
    assert choose_fact(query, [("ar_001", text)]).named is None


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("trinke Kaffee", "Ich trinke keinen Kaffee"),
        ("ho un cane", "Non ho un cane"),
        ("أحب القهوة", "لا أحب القهوة"),
        ("चाय पसंद है", "मुझे चाय पसंद नहीं है"),
        ("arbeite bei Siemens", "Meine Frau arbeitet bei Siemens"),
        ("İstanbul'da yaşıyorum", "Annem İstanbul'da yaşıyor"),
    ],
)
def test_a_denial_or_another_form_in_any_language_names_no_fact(query: str, text: str) -> None:
    assert choose_fact(query, [("ar_001", text)]).named is None


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("Hund Bello", "Mein Hund heißt Bello"),
        ("mi perro Rex", "Mi perro se llama Rex"),
        ("istanbul'da yaşıyorum", "İstanbul'da yaşıyorum"),
        ("मेरी बेटी", "मेरी बेटी डॉक्टर है"),
    ],
)
def test_equal_words_in_any_language_name_a_fact(query: str, text: str) -> None:
    assert choose_fact(query, [("ar_001", text)]).named == "ar_001"


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("six", "Has six cats"),
        ("6", "Has six cats"),
        ("Sunday", "Rests on Sunday"),
        ("March", "Visited Oslo in March"),
        ("blue", "Likes blue"),
        ("шесть", "Есть шесть кошек"),
        ("воскресенье", "Отдыхает в воскресенье"),
        ("синий", "Любит синий цвет"),
    ],
)
def test_a_number_a_date_or_an_adjective_alone_names_no_fact(query: str, text: str) -> None:
    choice = choose_fact(query, [("ar_001", text)])
    assert choice.named is None
    assert [each.id for each in choice.ranked] == ["ar_001"]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("owes Anna 50 euros", "Anna owes him 50 euros"),
        ("Anna lent Tom a drill", "Tom lent Anna a drill"),
        ("Петя любит Машу", "Маша любит Петю"),
        ("Петя любит Машу", "Петю любит Маша"),
        ("prefers coffee to tea", "Prefers tea to coffee"),
        ("предпочитает кофе чаю", "Предпочитает чай кофе"),
        ("bought a boat", "Wants to buy a boat"),
        ("moved to Porto", "Will move to Porto"),
        ("will move to Porto", "Moved to Porto"),
        ("smokes cigars", "Used to smoke cigars"),
        ("smoking cigars", "Quit smoking cigars"),
        ("курит сигары", "Раньше курил сигары"),
        ("купил лодку", "Хочет купить лодку"),
        ("переехал в Сочи", "Переедет в Сочи"),
    ],
)
def test_another_order_or_tense_names_no_fact(query: str, text: str) -> None:
    choice = choose_fact(query, [("ar_001", text)])
    assert choice.named is None
    assert [each.id for each in choice.ranked] == ["ar_001"]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("Martin", "Meets Martin weekly"),
        ("Антон", "Дружит с Антоном"),
        ("Anna", "Дружит с Анной"),
        ("six cats", "Has six cats"),
        ("owes Anna 50 euros", "Owes Anna 50 euros to share"),
        ("Петя любит Машу", "Петя очень любит Машу"),
        ("the kayak", "Wants to buy a kayak"),
        ("prefers tea to coffee", "Prefers tea to coffee in winter"),
        ("wants to buy a boat", "Wants to buy a boat in May"),
        ("moved to Porto", "Moved to Porto in May"),
        ("переехал в Сочи", "Переехал в Сочи в мае"),
    ],
)
def test_the_same_name_order_and_tense_name_the_fact(query: str, text: str) -> None:
    assert choose_fact(query, [("ar_001", text), ("ar_002", "Keeps bees")]).named == "ar_001"


def test_of_two_facts_that_fit_alike_none_is_named() -> None:
    two = [("ar_001", "Likes green tea"), ("ar_002", "Likes green tea with milk")]
    choice = choose_fact("green tea", two)
    assert choice.named is None
    assert [each.id for each in choice.ranked] == ["ar_001", "ar_002"]


def test_the_words_of_a_fact_as_they_stand_name_it() -> None:
    two = [("ar_001", "Likes green tea with milk"), ("ar_002", "Likes green tea"), ("ar_003", "Works")]
    assert choose_fact("likes green tea.", two).named == "ar_002"
    assert choose_fact("Works", two).named == "ar_003", "though one common word names nothing else"


@pytest.mark.parametrize("query", ["work", "работа", "my house", "дом"])
def test_a_word_that_many_facts_have_names_none(query: str) -> None:
    some = [
        "Works on Saturdays",
        "Keeps bees behind the house",
        "Держит пчёл за домом",
        "Работает по субботам",
    ]
    assert choose_fact(query, [(str(place), text) for place, text in enumerate(some)]).named is None


def test_long_query_takes_bounded_time() -> None:
    many = [(str(place), f"Has been to city number {place}") for place in range(300)]
    assert choose_fact("city " * 5000, many).named is None


def test_fact_with_exactly_the_words_of_a_query_fits_without_content_words() -> None:
    one = choose_fact("user name is", [("ar_001", "Likes tea"), ("ar_002", "User name is")])
    assert (one.named, one.ranked) == ("ar_002", (("ar_002", 1.0),))
    two = choose_fact("user name is", [("ar_001", "User name is"), ("ar_002", "User name is.")])
    assert (two.named, [each.id for each in two.ranked]) == (None, ["ar_001", "ar_002"])


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("where I live", "I live in Ghent"),
        ("where I live", "Lives in New York City."),
        ("Where do I live?", "The user lives in Ghent, Belgium"),
        ("where i live", "i live in ghent"),
        ("forget where I live", "I currently live in Ghent"),
        ("where I work", "Works at Google"),
        ("where I want to live", "Wants to live in Ghent"),
        ("what I drive", "I drive an old blue Volvo"),
        ("what I'm allergic to", "I'm allergic to raw red onions"),
        ("what I want to buy", "I want to buy a kayak"),
        ("what I work as", "Works as a nurse"),
        ("what I study", "Studies nursing"),
        ("my job", "My job is modern paper sculpture"),
        ("what my car is", "My car is an old blue Volvo"),
        ("где я живу", "Я живу в Генте"),
        ("где живу", "Живёт в Твери"),
        ("где я живу", "Живёт в городе Тверь"),
        ("где я живу", "Живёт в Старом Осколе"),
        ("где я живу", "Живу в Генте, Бельгия"),
        ("кем я работаю", "Работаю медсестрой"),
        ("что я вожу", "Вожу старую синюю Волгу"),
        ("моя машина", "Моя машина — старая синяя Волга"),
    ],
)
def test_question_phrase_names_the_fact_that_says_only_its_answer(query: str, text: str) -> None:
    assert choose_fact(query, [("a", text)]).named == "a"
    assert choose_fact(query, [("b", "Keeps bees"), ("a", text), ("c", "Есть кот")]).named == "a"


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("where I live", "I live in Ghent with my brother Tom"),
        ("where I live", "I live in Ghent with Tom"),
        ("where I live", "I live in Ghent alone"),
        ("where I live", "i live in ghent alone"),
        ("where I live", "i live in ghent studying law"),
        ("where I live", "i live in ghent, love tea"),
        ("where I live", "I live in Ghent and work at Google"),
        ("where I live", "I live in Ghent, love tea"),
        ("where I live", "I live in Ghent. Vegan"),
        ("where I live", "I live in Ghent since 2019"),
        ("where I live", "I live with Tom"),
        ("where I live", "Anna lives in Ghent"),
        ("where I live", "My mother lives in Ghent"),
        ("where I live", "I lived in Ghent"),
        ("where I live", "I want to live in Ghent"),
        ("where I live", "I don't live in Ghent"),
        ("where I lived", "I live in Ghent"),
        ("where did I live", "I live in Ghent"),
        ("where I want to live", "I live in Ghent"),
        ("where Anna lives", "I live in Ghent"),
        ("where he lives", "I live in Ghent"),
        ("when I live", "I live in Ghent"),
        ("how I live", "I live in Ghent"),
        ("what I live", "I live in Ghent"),
        ("I live", "I live in Ghent"),
        ("live", "I live in Ghent"),
        ("where I work", "I work on robots"),
        ("where I work", "I work in the evenings"),
        ("where I work", "Works as a nurse at Saint Mary's hospital"),
        ("what I eat", "I eat meat on Fridays"),
        ("what I eat", "I eat meat rarely"),
        ("what I eat", "I eat meat every day"),
        ("what I keep", "Keeps bees behind the house"),
        ("what I wear", "Wears a watch instead of a bracelet"),
        ("what I drink", "I drink to forget"),
        ("what I love", "I love tea, coffee"),
        ("what I love", "I love tea and coffee"),
        ("what I love", "I love my brother"),
        ("my old home", "My old home needs paint"),
        ("где я живу", "Я живу в Генте с братом"),
        ("где я живу", "Я живу в Генте постоянно"),
        ("где я живу", "Живу в Генте один"),
        ("где я живу", "Живу в Генте и работаю в Брюгге"),
        ("где я живу", "Мама живёт в Генте"),
        ("где я живу", "Анна живёт в Генте"),
        ("где я живу", "Я жил в Генте"),
        ("где я живу", "Я не живу в Генте"),
        ("где живёт", "Я живу в Генте"),
        ("где я работаю", "Работаю в ночную смену"),
        ("где я играю", "Играю на виолончели"),
        ("где я играю", "Играет в шахматы"),
        ("где я взял", "Взял в библиотеке сборник Тэффи"),
        ("кем я работаю", "Работаю в школе"),
        ("что я пью", "Пью кофе по утрам"),
        ("что я пью", "Пью кофе утром"),
    ],
)
def test_question_phrase_names_no_fact_that_says_more_or_something_else(query: str, text: str) -> None:
    assert choose_fact(query, [("a", text)]).named is None


@pytest.mark.parametrize(
    ("query", "one", "other"),
    [
        ("where I live", "I live in Ghent", "Lives in Bruges"),
        ("where I live", "I live in Ghent", "My mother lives in Porto"),
        ("what I drive", "I drive an old blue Volvo", "I drive to work"),
        ("my job", "My job is teaching", "Hates the job"),
        ("где я живу", "Я живу в Генте", "Живёт в Твери с соседями"),
    ],
)
def test_question_phrase_with_its_words_in_two_facts_names_neither(query: str, one: str, other: str) -> None:
    choice = choose_fact(query, [("a", one), ("b", other)])
    assert choice.named is None
    assert {each.id for each in choice.ranked} == {"a", "b"}
