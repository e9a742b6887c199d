"""Facts of an English and a Russian user, and queries that name one of these facts or none.

The rules were written with the queries of `FIT` and `UNFIT` in view, and without sight of those of `HELD`.
"""

from typing import Final, NamedTuple


class QueryCase(NamedTuple):
    """A query, and the index in `FACTS` of the fact that the query means."""

    query: str
    place: int


FACTS: Final = {
    "en": (
        "Keeps bees behind the house",
        "Is allergic to penicillin",
        "Works as a nurse at Saint Mary's hospital",
        "Lives in Leeds with two flatmates",
        "Plays the cello in an amateur orchestra",
        "The user's mother lives in Porto",
        "Flies from Rome to Oslo on June 17",
        "Has a cat called Biscuit",
        "Does not eat meat or fish",
        "Brother Tom is a firefighter",
        "Runs a half marathon every October",
        "Takes the night train to Vienna for work",
        "Is learning Portuguese with a tutor",
        "Drives an old blue Volvo",
        "No longer smokes",
        "Daughter Emma turns seven on 4 March",
        "Prefers oat milk in coffee",
        "Goes climbing on Thursday evenings",
        "Owes Daniel 40 euros",
        "Writes a blog about bread baking",
        "Dentist appointment is on 12 May at 9:30",
        "Uses a MacBook with a Norwegian keyboard",
        "Grew up on a farm near Galway",
        "Pays 950 pounds of rent a month",
        "Is afraid of heights",
        "Collects stamps from Japan",
        "Studied chemistry in Glasgow",
        "Broke the left wrist in 2019",
        "Wants to buy a kayak next spring",
        "Boss is called Ingrid Halvorsen",
    ),
    "ru": (
        "Держит пчёл за домом",
        "У пользователя аллергия на пенициллин",
        "Работает медсестрой в детской больнице",
        "Живёт в Твери с двумя соседями",
        "Играет на виолончели в любительском оркестре",
        "Мама живёт в Самаре",
        "Летит из Москвы в Казань 17 июня",
        "Есть кот по кличке Бублик",
        "Не ест мясо и рыбу",
        "Брат Антон служит пожарным",
        "Каждый октябрь бегает полумарафон",
        "Ездит в командировки ночным поездом",
        "Учит португальский с репетитором",
        "Водит старую синюю Волгу",
        "Больше не курит",
        "Дочке Соне исполнится семь лет 4 марта",
        "Пьёт кофе с овсяным молоком",
        "По четвергам ходит на скалодром",
        "Должен Даниилу 4000 рублей",
        "Ведёт блог о выпечке хлеба",
        "Приём у стоматолога 12 мая в 9:30",
        "Пользуется ноутбуком с норвежской клавиатурой",
        "Вырос на ферме под Вологдой",
        "Платит за квартиру 35 тысяч в месяц",
        "Боится высоты",
        "Собирает марки из Японии",
        "Изучал химию в Томске",
        "Сломал левое запястье в 2019 году",
        "Хочет купить байдарку весной",
        "Начальницу зовут Инга Соколова",
    ),
}

_UNFIT: Final = {
    "en": """
the house rent; the house in the country; my house keys; bee sting allergy;
my mother's penicillin allergy; allergy to nuts; that I am not allergic to penicillin;
my father's job at the hospital; the hospital bill; Saint Patrick's day party; where my brother lives;
my flatmates' names and birthdays; the flat in Bristol; my violin lessons; the orchestra's tour of Spain;
cello strings I ordered; my father lives in Porto; mother's birthday; my mother's phone number;
the trip to Rome; flight to Rome on June 17; flight to Oslo on June 10; flight from Oslo; my cat's vet;
the dog called Biscuit; biscuit recipe; that I eat meat; fish tank; meat thermometer;
my brother's wedding; brother Peter; Tom's birthday; firefighter calendar; the full marathon in Berlin;
marathon training plan; October holiday; the day train to Vienna; the night shift; Vienna opera tickets;
my Spanish tutor; Portuguese passport; the tutor's salary; my red Volvo; car insurance;
the Volvo's number plate; that I smoke; smoked salmon; Emma's school; my son's birthday;
daughter turns eight; 4 April; soy milk in coffee; my coffee machine; oat allergy; climbing shoes;
yoga on Thursday evenings; climbing on Monday; Daniel's address; 40 dollars owed to Anna;
Daniel owes me 50 euros; my travel blog; bread knife; baking class; dentist's name;
dentist appointment on 13 May; doctor's appointment in June; the Norwegian course; my Lenovo laptop;
keyboard shortcuts for Linux; the farm insurance; grandfather's farm in Kerry; moving to Galway;
the rent of the garage; 900 pounds of rent; the month of May; fear of spiders; my height and weight;
afraid of flying; coin collection; the trip to Japan; stamps from Brazil; physics degree;
my years in Edinburgh; chemistry set for Emma; broken ankle; the right wrist; wrist watch;
surgery in 2020; canoe trip; the spring cleaning; buying a tent; boss's birthday; my colleague Ingrid;
the former boss; political views; favourite film; gym membership; wifi name; tattoo on the shoulder;
quantum chromodynamics
""",
    "ru": """
аренда дома; ключи от дома; дом в деревне; укус пчелы; аллергия мамы на пенициллин; аллергия на орехи;
что у меня нет аллергии на пенициллин; работа отца в больнице; счёт из больницы; детский сад;
где живёт мой брат; имена соседей; квартира в Ярославле; уроки скрипки; гастроли оркестра;
струны для виолончели; папа живёт в Самаре; день рождения мамы; телефон мамы; поездка в Москву;
летит в Москву 17 июня; рейс в Казань 10 июня; рейс из Казани; ветеринар кота; собака по кличке Бублик;
рецепт бубликов; что я ем мясо; аквариум с рыбами; мясной пирог; свадьба брата; брат Пётр;
день рождения Антона; пожарная сигнализация; марафон в Берлине; план тренировок; отпуск в октябре;
дневной поезд; ночная смена; командировка в Пермь; репетитор по испанскому; паспорт Португалии;
зарплата репетитора; красная Волга; страховка машины; номер машины; что я курю; копчёная рыба;
школа Сони; день рождения сына; дочке исполнится восемь; 4 апреля; кофе с соевым молоком; кофемашина;
аллергия на овёс; скальные туфли; йога по четвергам; скалодром по понедельникам; адрес Даниила;
4000 долларов; Даниил должен мне 500 рублей; блог о путешествиях; нож для хлеба; курсы выпечки;
имя стоматолога; приём у стоматолога 13 мая; запись к терапевту; курсы норвежского; ноутбук Леново;
раскладка для Линукса; страховка фермы; ферма дедушки; переезд в Вологду; плата за гараж;
квартира за 30 тысяч; месяц май; страх пауков; мой рост и вес; боюсь летать; коллекция монет;
поездка в Японию; марки из Бразилии; диплом по физике; жизнь в Новосибирске; набор по химии для Сони;
сломанная лодыжка; правое запястье; часы на запястье; операция в 2020 году; поход на каноэ;
весенняя уборка; купить палатку; день рождения начальницы; коллега Инга; бывшая начальница;
политические взгляды; любимый фильм; абонемент в спортзал; имя сети; татуировка на плече;
квантовая хромодинамика
""",
}
UNFIT: Final = {
    language: tuple(" ".join(query.split()) for query in queries.split(";"))
    for language, queries in _UNFIT.items()
}
"""Queries that mean none of the facts; many have a word in common with a fact."""

FIT: Final = {
    "en": (
        QueryCase("keeping bees", 0),
        QueryCase("my penicillin allergy", 1),
        QueryCase("forget that I work as a nurse", 2),
        QueryCase("where I live", 3),
        QueryCase("the cello", 4),
        QueryCase("my mother lives in Porto", 5),
        QueryCase("the flight from Rome to Oslo", 6),
        QueryCase("my cat Biscuit", 7),
        QueryCase("that I don't eat meat", 8),
        QueryCase("Tom the firefighter", 9),
        QueryCase("the half marathon", 10),
        QueryCase("night trains to Vienna", 11),
        QueryCase("learning Portuguese", 12),
        QueryCase("my blue Volvo", 13),
        QueryCase("that I no longer smoke", 14),
        QueryCase("Emma turning seven", 15),
        QueryCase("oat milk", 16),
    ),
    "ru": (
        QueryCase("что я держу пчёл", 0),
        QueryCase("моя аллергия на пенициллин", 1),
        QueryCase("забудь, что я работаю медсестрой", 2),
        QueryCase("где я живу", 3),
        QueryCase("виолончель", 4),
        QueryCase("мама в Самаре", 5),
        QueryCase("рейс из Москвы в Казань", 6),
        QueryCase("кот Бублик", 7),
        QueryCase("что я не ем мясо", 8),
        QueryCase("брат Антон пожарный", 9),
        QueryCase("полумарафон в октябре", 10),
        QueryCase("ночной поезд", 11),
        QueryCase("португальский с репетитором", 12),
        QueryCase("моя синяя Волга", 13),
        QueryCase("что я больше не курю", 14),
        QueryCase("Соне семь лет", 15),
    ),
}

HELD: Final = {
    "en": (
        QueryCase("climbing on Thursdays", 17),
        QueryCase("40 euros I owe Daniel", 18),
        QueryCase("the bread baking blog", 19),
        QueryCase("my dentist appointment", 20),
        QueryCase("the Norwegian keyboard", 21),
        QueryCase("the farm near Galway", 22),
        QueryCase("my fear of heights", 24),
        QueryCase("collecting Japanese stamps", 25),
    ),
    "ru": (
        QueryCase("скалодром по четвергам", 17),
        QueryCase("долг Даниилу", 18),
        QueryCase("блог про хлеб", 19),
        QueryCase("приём у стоматолога", 20),
        QueryCase("норвежская клавиатура", 21),
        QueryCase("детство на ферме под Вологдой", 22),
        QueryCase("страх высоты", 24),
        QueryCase("японские марки", 25),
        QueryCase("сломанное запястье", 27),
    ),
}
