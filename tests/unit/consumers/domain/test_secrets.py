"""Facts that the policy rejects because they contain a secret."""

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mnemonic import Mnemonic

from mnemon_consumers.domain.policy.refusal import find_refusal
from mnemon_consumers.domain.policy.secrets.detection import find_secret
from mnemon_consumers.domain.policy.secrets.long_texts import find_secret_in_long_text
from mnemon_contracts.events.memory import Reason
from mnemon_contracts.settings.groups import Policy

SECRETS = (
    "My key is sk-1234567890abcdef",
    "sk-proj-abcdefABCDEF123456",
    "Key sk-abcdefghijklmnopqrst",
    "Authorization: Bearer abcdefghijkl",
    "Use Bearer abc123def456 for requests",
    "d41d8cd98f00b204e9800998ecf8427e is in the notes",
    "Token is 0x4c0883a69102937d6231471b5dbb6204fe5129617082792ae468d01a3f362318",
    "-----BEGIN RSA PRIVATE KEY----- MIIE",
    "-----BEGIN OPENSSH PRIVATE KEY-----",
    "jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlF",
    "AWS key AKIAIOSFODNN7EXAMPLE is mine",
    'aws_secret_access_key = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"',
    "GitHub ghp_aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789",
    "slack xoxb-123456789012-1234567890123-abcdefabcdef",
    "Card 4111 1111 1111 1111 is mine",
    "Card 4111-1111-1111-1111 exp 12/25 123",
    "моя карта 5555555555554444",
    "Карта 2200 0000 0000 0004, мир",
    "Amex 3782 822463 10005 works",
    "пароль: солнышко",
    "Пароль от вайфая: qwerty123",
    "мой пароль qwerty123",
    "Password is hunter2",
    "password: correct horse battery",
    "The password for the router is swordfish",
    "пин-код 4821 от карты",
    "PIN: 1234 for my card",
    "CVV 123 on the back",
    "postgres://user:pass1234@db.example.com/x",
    "api key: abcd1234efgh5678",
    "telegram 123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsawQ",
    "AIzaSyA1234567890abcdefghijklmnopqrstuv",
    "我的卡号是4111111111111111",
    "カード番号は４１１１ １１１１ １１１１ １１１１です",
    "رقم بطاقتي ٤١١١١١١١١١١١١١١١ الآن",
    "मेरा कार्ड ४१११ ११११ ११११ ११११ है",
    "我的IBAN是DE89370400440532013000",
    'curl -H "Authorization: Bearer abc.def.ghi123" https://x.y',
)


def reason(text: str) -> Reason | None:
    refused = find_refusal(text, Policy())
    return refused[0] if refused else None


@pytest.mark.parametrize("text", SECRETS)
def test_secrets_are_refused_and_not_repeated(text: str) -> None:
    refused = find_refusal(text, Policy())
    assert refused is not None
    assert refused[0] == "secret"
    secrets = [word for word in text.split() if any(sign.isdigit() for sign in word) and len(word) > 3]
    assert not any(word in refused[1] for word in secrets)


def test_a_secret_in_a_command_or_a_question_is_a_secret() -> None:
    assert reason("export KEY=sk-1234567890abcdef") == "secret"
    assert reason("Is sk-1234567890abcdef my key?") == "secret"


@pytest.mark.parametrize(
    "number",
    [
        "4000001234567890124",
        "4000 0012 3456 7890 124",
        "4000.0012.3456.7890.124",
        "6212345678901234569",
        "6212-3456-7890-1234-569",
        "501812345678901236",
        "220012345678901231",
    ],
)
def test_cards_with_more_than_16_digits_are_refused(number: str) -> None:
    assert reason(f"User's number is {number} there") == "secret"
    wrong = number[:-1] + str((int(number[-1]) + 1) % 10)
    assert reason(f"User's number is {wrong} there") is None, "the check digit is wrong"


@pytest.mark.parametrize(
    "number",
    ["4111 1111 1111 1112", "1234567890123", "4111-1111-1111-111", "0000 0000 0000 0000", "9111111111111111"],
)
def test_numbers_that_no_card_has_are_kept(number: str) -> None:
    assert reason(f"User's number is {number} there") is None


@pytest.mark.parametrize(
    "text",
    [
        "Её пароль солнышко",
        "Пароль от вайфая ромашка",
        "Пароль: красная лиса",
        "The password for email is correct horse battery staple",
        "my login is anna and the password qwerty",
        "swordfish is my password",
        "Uses the password hamster for everything",
        "User changed the laptop password to MondayBlues",
        "Логин anna, пароль qwerty",
    ],
)
def test_a_password_of_plain_words_is_refused(text: str) -> None:
    assert reason(text) == "secret"


@pytest.mark.parametrize(
    "text",
    [
        "Her password is the same everywhere",
        "The password is case sensitive",
        "Password was changed last week",
        "The password for the Wi-Fi is printed on the router",
        "Uses a fingerprint as the password for the phone",
        "Его пароль слишком простой",
        "Пароль от почты потерян ещё весной",
        "Пароль от компьютера у начальника отдела",
        "Пароль знает только жена пользователя",
        "Пароль — это не главное в безопасности",
    ],
)
def test_a_description_of_a_password_is_kept(text: str) -> None:
    assert reason(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "My pаsswоrd is tulip",
        "Пaрoль от почты: тюльпан",
        "p a s s w o r d : tulip garden",
        "п.а.р.о.л.ь тюльпан",
        "pass\u200bword for the NAS is basilisk",
        "ｐａｓｓｗｏｒｄ: ｔｕｌｉｐ",
        "ПИН от карты 4️⃣8️⃣2️⃣1️⃣",
        "PIN is four eight two one",
        "p@ssw0rd: tulip garden",
    ],
)
def test_a_disguised_secret_is_refused(text: str) -> None:
    assert reason(text) == "secret"


def test_a_text_in_two_scripts_is_no_secret() -> None:
    assert reason("Пьёт кофе в Starbucks и слушает Кино") is None
    assert reason("Купил VIPку на концерт группы Кино") is None


@pytest.mark.parametrize("word", ["commit", "sha256 of the file", "image", "коммит", "контрольная сумма"])
def test_long_hexadecimal_digits_are_kept_where_the_sentence_says_whose_they_are(word: str) -> None:
    digits = "9fceb02d0ae598e95dc970b74767f19372d61af8"
    assert reason(f"The notes say {digits}") == "secret"
    assert reason(f"In the notes: {word} {digits}") is None
    assert reason(f"In the notes: secret key, {word} {digits}") == "secret"


SEED = "abandon ability able about above absent absorb abstract absurd abuse access accident"


def test_twelve_words_of_a_seed_list_are_refused_and_eleven_are_kept() -> None:
    assert reason(f"Remember these: {SEED}") == "secret"
    assert reason(f"Remember these: {SEED.rpartition(' ')[0]}") is None
    assert (
        reason("Remember these: " + ", ".join(f"{place} {word}" for place, word in enumerate(SEED.split())))
        == "secret"
    )
    assert reason("Seed phrase of the wallet: army van defense carry") == "secret"


def test_words_of_no_list_are_refused_after_the_name_of_a_seed_phrase() -> None:
    assert reason("Electrum seed: witch collapse practice feed shame open despair") == "secret"
    assert reason("Seed phrase: it is written on paper and lies in the safe at home") is None


def test_seed_words_of_another_language_are_refused() -> None:
    words = Mnemonic("russian").wordlist[::150][:12]
    assert reason(" ".join(words)) == "secret"


@pytest.mark.parametrize("text", ["IBAN is DE89 3704 0044 0532 0130 00", "Счёт 40817810099910004312 в банке"])
def test_bank_accounts_are_refused_unless_the_setting_is_off(text: str) -> None:
    assert reason(text) == "secret"
    assert find_refusal(text, Policy(refuse_bank_accounts=False)) is None


@pytest.mark.parametrize(
    "text",
    [
        "SSN of the user is 219-09-9999",
        "Her passport number is 533380006",
        "Паспорт 4510 123456 выдан в Москве",
        "СНИЛС 112-233-445 95 у бабушки",
        "ИНН пользователя 500100732259",
        "National insurance number: AB123456C",
        "Водительское удостоверение 99 12 345678",
    ],
)
def test_documents_are_refused_unless_the_setting_is_off(text: str) -> None:
    assert reason(text) == "secret"
    assert find_refusal(text, Policy(refuse_documents=False)) is None


def test_setting_that_keeps_secrets_applies_to_every_kind() -> None:
    policy = Policy(refuse_secrets=False)
    assert find_refusal("IBAN is DE89 3704 0044 0532 0130 00", policy) is None
    assert find_refusal("Her passport number is 533380006", policy) is None


def test_an_iban_with_a_wrong_check_digit_is_refused_only_by_its_name() -> None:
    assert reason("IBAN is DE88 3704 0044 0532 0130 00") == "secret"
    assert reason("Part DE88 3704 0044 0532 0130 00 was ordered") is None


HOSTILE = (
    "0 ",
    "1 ",
    "a.b@",
    "x/",
    "four ",
    "12-34-",
    "4111-",
    "пароль ",
    "password is ",
    "пароль от почты ",
    "код от ",
    "A1",
    "twenty ",
    "log in with ",
    "safe opens ",
    "сейф 1-2 ",
    "security question ",
)


@pytest.mark.parametrize("piece", HOSTILE)
def test_ten_thousand_hostile_characters_are_checked_in_time(piece: str) -> None:
    find_secret("Её пароль слишком простой", Policy())
    begun = time.thread_time()
    find_secret((piece * 10_000)[:10_000], Policy())
    # At least twenty times the usual time; exponential backtracking takes longer.
    assert time.thread_time() - begun < 5


@given(st.text(alphabet=st.sampled_from("aбpп01 .:-—=/\"«»№@'\u200bпинкодpasswordis"), max_size=400))
def test_any_text_is_checked(text: str) -> None:
    find_secret(text, Policy())


@pytest.mark.parametrize(
    "text",
    [
        '{"note": "Her password is Sunflower77", "facts": "none"}',
        json.dumps({"note": "Её пароль солнышко"}),
        "I cannot do that.\nHer password is Sunflower77\nSorry.",
        "x" * 150_000 + " the password is Sunflower77",
    ],
)
def test_a_secret_in_a_long_text_is_seen(text: str) -> None:
    assert find_secret_in_long_text(text, Policy()) == "a password"


def test_a_long_text_without_a_secret_is_none() -> None:
    assert find_secret_in_long_text(json.dumps({"note": "Его пароль слишком простой"}), Policy()) is None


@pytest.mark.parametrize(
    "text",
    [
        "Log in with hunter2",
        "Use Sunflower77 to get into the wifi",
        "Cheese42 gets you into the wifi",
        'For the VPN he types in "grey pelican"',
        "The user enters sunnyday at the login screen",
        "Заходит под qwerty123",
        "Для входа в почту набирает Zima2025!",
        "В консоль входит по слову «фиолетовый ёж»",
        "Вайфай на даче: сирень77",
        "Sunflower77 is what the Wi-Fi wants",
        "The home network lets guests in with Marigold58",
        "Для всех сайтов использует zaychik1990",
        "The archive is protected with the word birch",
        "Архив открывается словом берёза",
        "Her Instagram is protected by sparklepony22",
        'Wi-Fi at work is "Staff", key "brewery-lamp-11"',
        "Login for the tax office: bkeller, Steuer!2024",
        "Remember my Hulu password, it's cactusjack",
        "The key to the backup is tulip-forest-moon-12",
    ],
)
def test_a_credential_told_by_an_action_is_refused(text: str) -> None:
    assert reason(text) == "secret"


@pytest.mark.parametrize(
    "text",
    [
        "The safe opens with 13-27-42",
        "The gate answers to 9031#",
        "Enter 5519 on the keypad to open the garage",
        "The safe is 18 left, 4 right, 33 left",
        "Safe code twenty-two forty thirteen",
        "Сейф открывается 13-27-42",
        "Разблокировка телефона 4-7-9-1",
        "Код от сейфа двенадцать сорок пять",
        "Чтобы снять сигнализацию, вводят 8812",
        "Keeps the same PIN on every card: 3906",
        "The safe is his birthday backwards, 9172",
        "Her voicemail PIN never changed from 0000",
        "User's banking PIN is four sevens",
        "Press 77 then 1204 at the intercom",
        "She unlocks her phone with the pattern 1-4-7-8-9",
        "Got a text with 714920 to confirm the transfer",
        "Пин от всех карт — четыре семёрки",
        "To open the locker she turns it to 14, then 32, then 7",
        "The nanny lets herself in with 2580",
        "The kids know the parental control code, 4567",
        "Just memorised the new bank PIN (7294)",
        "Трёхзначный код на обороте карты 771",
        "У бабушки на планшете код 1945",
        "The babysitter knows the entry code; it is 6093",
        "Her PIN? 9461",
        "The entry code was changed to 1357 last week",
        "Дети вводят на планшете 2468",
        "The garage door listens for 7788",
        "The co-working space lets him in on 40961#",
        "The combination of the safe: right 12, left 40, right 3",
        "Коворкинг пускает по 40961#",
        "Social security number five three six, ninety, 4399",
    ],
)
def test_a_code_told_by_an_action_or_in_words_is_refused(text: str) -> None:
    assert reason(text) == "secret"


@pytest.mark.parametrize(
    "text",
    [
        "Mother's maiden name for the bank is Kowalski",
        "For the security question about a first pet she answers Pickles",
        "Девичья фамилия матери для банка Ковальская",
        "Ответ на контрольный вопрос Пушок",
        "На вопрос безопасности отвечает Барсик",
        "Answers his first pet question with Pickles",
        "На вопрос о кличке первого питомца отвечает Барсик",
        "First car, for the PayPal recovery, was a Renault Clio",
    ],
)
def test_the_answer_to_a_security_question_is_refused(text: str) -> None:
    assert reason(text) == "secret"


@pytest.mark.parametrize(
    "text",
    [
        "Её пасворд солнышко",
        "Пороль: зимний лес",
        "His pasword is teapot",
        "wifi pass sunnyhill",
        "Password is in Spanish: perro feliz azul",
        "The pass for her mailbox is k1ttens",
    ],
)
def test_a_misspelled_or_short_name_of_a_password_is_known(text: str) -> None:
    assert reason(text) == "secret"


@pytest.mark.parametrize(
    "text",
    [
        "Log in with Google",
        "Use Chrome to get into the portal",
        "The shop opens with a bell",
        "Opens at 13:27",
        "The garage opens from 7 to 19",
        "The vault was sealed on 12-05-98",
        "The answer to the question is yes",
        "Mother's maiden name is Kowalski",
        "Заходит под вечер",
        "Набирает вес",
        "Код ревью занимает два часа",
        "Шлагбаум открывают в 7-00",
        "Подключил вайфай с iPhone15",
        "Девичья фамилия матери Ковальская",
        "Ответ на контрольный вопрос забыла",
        "The home network lets guests in without a password",
        "The safe is his birthday present from 2019",
        "Answers his first email at 7 am",
        "Архив открывается словом и делом",
        "He set the volume to 3, then 5, then 7",
        "The office is on Elm Street, 4512",
        "The building opens to 2000 visitors a day",
        "Put 2000 dollars in the safe",
        "Entered 4512 rows on the office computer",
        "Got into the building by 2015",
        "Bought Cyberpunk2077 on Steam",
        "First car she bought with a bank loan was a Renault",
        "Security question is Mother's maiden name",
        "The password is a mix of numbers, letters and symbols",
        "Email from 2021 confirms the contract",
        "The letter opens with the word dear",
        "Her Steam account got a season pass discount",
        "The word for bank in French is banque",
        "The course code is 44712",
        "Книга открывается словом мама",
        "Opens the shop with 4500 in the till",
        "The safe is open, 4500 is missing",
        "Passwords leaked: 4500000",
        "The bike was locked by 2100",
        "He typed 4512 as the order quantity on his tablet",
        "Телефон открыли на форуме: 4512 просмотров",
        "Код проекта: 44512",
        "Пришло 1500 рублей за вход",
        "Пароль стоит сменить",
        "Архив открывается паролем длиной 12",
    ],
)
def test_the_same_action_without_a_value_is_kept(text: str) -> None:
    assert reason(text) is None
