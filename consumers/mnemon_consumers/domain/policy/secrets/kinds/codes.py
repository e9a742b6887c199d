"""Detection of PINs, one-time codes, backup codes and codes of doors and safes, in English and Russian."""

import re
from typing import Final

from mnemon_consumers.domain.policy.secrets.values import (
    COUNTED,
    HINT,
    REPEATED_DIGITS,
    SPOKEN_NUMBERS,
    UNIT,
    has_number_word,
    has_word,
    is_ordinary,
    is_placeholder,
    list_beginnings,
)
from mnemon_consumers.domain.policy.wording import compile_pattern, split_word_list

_LOCKED: Final = (
    r"(?:front door|back door|door|gate|garage|building|house|home|flat|apartment|office|"
    r"entrance|entry|entryway|lobby|intercom|"
    r"elevator|lift|safe|vault|alarm|locker|lock|keypad|key box|lockbox|suitcase|luggage|"
    r"padlock|bike|storage|cellar|shed|gym|"
    r"barrier|parking|car|phone|tablet|laptop|ipad|iphone|sim|card|debit card|credit card|"
    r"bank card|bank|atm|app|account|vault|"
    r"voicemail|room|hotel room|airbnb|cottage|dacha|pool|barn|studio|warehouse|cabin)"
)
_SENT: Final = (
    r"(?:sms|text|texts|text message|message|e-?mail|mail|push|authenticator|"
    r"authenticator app|google authenticator|authy|app|"
    r"bank|telegram|whatsapp|signal|gosuslugi|device|token|call)"
)
_ENGLISH: Final = rf"""
    (?:(?:the\s)?(?:{_LOCKED}|access|unlock|unlocking|security|verification|confirm(?:ation)?|one-time|
    onetime|single-use|login|log-in|
    sign-in|signin|auth(?:entication|enticator|orization)?|2-?fa|mfa|two-?factor|two-step|2-step|totp|otp|
    sms|text|pass|backup|back-up|recovery|
    rescue|emergency|restore|reset|pairing|activation|disarm(?:ing)?|entrance|secret|pin|puk|whatsapp|
    telegram|google|apple|steam|bank|gosuslugi)
    ['’]?s?[ -](?:\w+[ -])?(?:codes?|pins?|combination|combo)|
    (?:codes?|combination|combo|digits)\s(?:sent\s|that\scame\s|i\sgot\s|received\s)?(?:from|for|to|of|on|
    in|at|by|via)\s
    (?:(?:the|a|an|my|his|her|our|their|your|this|that|last|[\w-]+['’]s)\s)*(?:[\w-]+\s)?(?:{_LOCKED}|
    {_SENT})|
    (?:lock|safe|locker|padlock)\s(?:combination|combo|code)|
    [a-z][\w’'-]{{2,}}\scode(?=(?:\s(?:of|for|to|on|at|from)\s(?:\w+\s?){{1,3}})?(?:['’]s|\sis|\swas|
    \s?[:=—–]|,)\s)|
    pin(?:[ -]?(?:codes?|numbers?))?|puk(?:[ -]?\d)?(?:[ -]?code)?|cvv2?|cvc2?|cvn|otps?|totp|passcode|
    (?:door|gate|alarm|safe|lock|intercom|entry)\s?pin|(?:the\s)?security\s(?:number|digits))
"""
_OF_LOCK: Final = (
    r"(?:входн\w+ двер\w+|двер\w+|подъезд\w*|парадн\w+|домофон\w*|калитк\w+|ворот\w*|сейф\w*|"
    r"замк\w+|замок|гараж\w*|шлагбаум\w*|"
    r"сигнализаци\w+|квартир\w+|дом\w{0,2}|чемодан\w*|ячейк\w+|шкафчик\w*|камер\w+ хранения|"
    r"офис\w*|двор\w*|лифт\w*|"
    r"телефон\w{0,2}|планшет\w*|симк\w+|карт\w{1,2}|банк\w*|сбер\w*|тинькофф\w*|госуслуг\w*|"
    r"постамат\w*|велосипед\w*|велозамк\w+|склад\w*|дач\w+|кладов\w+|раздевалк\w+|паркинг\w*|бокс\w*)"
)
_RUSSIAN: Final = rf"""
    (?:(?:пин|pin)(?:[ -]?код)?(?:а|у|ом|ы|ов)?|пук(?:[ -]?код)?|puk(?:[ -]?код)|cvv[ -]?код|цвв|
    (?:смс|sms|otp|2fa)[ -]?код\w{{0,2}}|
    (?:одноразов|резервн|запасн|проверочн|секретн|аварийн|защитн|кодов|входн|платежн|
    тайн)\w+\s(?:смс-)?(?:код\w{{0,2}}|пин\w*|замок|замк\w+)|
    (?:двухфакторн\w+\s)(?:код\w{{0,2}})|
    код\w{{0,2}}\s(?:от|к|на)\s|
    код\s(?!(?:ревью|города|страны|региона|ошибки|товара|проекта|заказа|урока|бронирования|отправления|
    скидки|купона|валюты|подразделения|группы|
    краски|модели|налоговой|предмета|классификатора|детали|оквэд|кбк|окпо|октмо|тн|причины|операции|услуги|
    организации|продавца)\b)(?:для\s)?[а-яё]{{4,}}
    (?=(?:\s(?:от|для|на|в|к|из)\s\S+){{0,2}}?\s?(?:[:=—–]|\s-)\s)|
    код\w{{0,2}}\s(?:для\s)?(?:(?:их|его|е[её]|моего|моей|нашего|нашей|вашего|своего|своей|общего|старого|
    нового|аварийного|гостевого|служебного)\s)?(?:подтверждени\w+|доступа|авторизации|аутентификации|входа|
    разблокировки|восстановлени\w+|
    активации|
    безопасности|проверки|двухфакторк\w+|двухфакторн\w+\s\w+|2fa|домофона|подъезда|двери|сейфа|замка|
    шлагбаума|ворот|калитки|
    сигнализации|карты|гаража|ячейки|чемодана|квартиры|парадной|офиса)|
    код\w{{0,2}}\s(?:пришедш\w+\s)?(?:из|с|в|по|по\sиз)\s(?:последн\w+\s)?(?:смс\w*|sms\w*|сообщени\w+|
    письм\w+|приложени\w+|пуш\w*|аутентификатор\w*|
    google\s\w+|звонк\w+|почт\w+|телеграм\w*|банк\w*|сбер\w*)|
    код\w{{0,2}}\s(?:для\s(?:\w+\s)?)?{_OF_LOCK}|домофон\w{{0,2}}|
    код\w{{0,2}}\s(?:банка|сбера|сбербанка|тинькофф\w*|т-банка|альфы|госуслуг|телеграма|вотсапа|ватсапа|
    яндекса|гугла))
"""
_BARE: Final = (
    r"(?:(?:^|[.;!?,]\s*|\b(?:my|his|her|our|their|your|the|[a-z]+['’]s|user['’]s)\s+)codes?|"
    r"(?:^|[.;!?,]\s*|(?<!\w)(?:мой|его|е[её]|их|наш|ваш|твой|и)\s+)коды?)"
)
_NOUN: Final = re.compile(
    rf"(?<![^\W_])(?:{''.join(line.strip() for line in _ENGLISH.splitlines())}|"
    rf"{''.join(line.strip() for line in _RUSSIAN.splitlines())})(?<!\s)(?![^\W_])|"
    r"(?<![^\W_])код\w{0,2}\s(?:от|к)(?=\s)|(?<![^\W_])код\w{0,2}\sна(?=\s(?:двер|подъезд|"
    r"калитк|замк|ворот|сейф|домофон|телефон|шлагбаум|гараж|вход))",
    re.IGNORECASE,
)
_BARE_NOUN: Final = re.compile(_BARE + r"(?![^\W_])", re.IGNORECASE)

_VALUE: Final = (
    rf"(?P<value>{SPOKEN_NUMBERS}|[#*]?\d{{3}}[ -]\d{{3}}(?![\d-])|"
    rf"\d{{1,2}}(?:[ -]\d{{1,2}}){{2,5}}(?![\d-])|\d(?:[ -]\d){{3,}}|"
    r"\d{2}[ -]\d{2}(?![\d-])|[#*]?\d{3,10}[#*]?(?![\w.]\w)|[A-ZА-Я]-\d{4,8}|"
    r"(?=[\w-]*\d)(?=[\w-]*[^\W\d_])[#*]?[\w]{3,12}(?:-[\w]{2,12}){0,6}[#*]?|"
    r"(?=[\w-]*\d)[\w]{4,12}(?:-[\w]{4,12}){1,6}|\d{1,4}[ ]?(?:[кКkK]|ключ)[ ]?\d{2,6})"
)
_AFTER: Final = re.compile(
    rf"(?P<gap>(?:[ ,]+(?!\d)[^\s:=.;!?—–\d«\"“]+){{0,9}}?(?:\s*\([^)\d]{{0,30}}\))?)"
    rf"(?P<sign>\s*,\s+(?=\d{{4,8}},)|\s*(?::|=|—|–|->|→|#)\s*|\s+-\s+|\s+(?:is|are|was|as|"
    rf"equals|это|будет|был|такой|следующий|стал|now)\s*[:—–-]?\s*|\s+)"
    rf"(?:(?:это|is|now|still|currently|now is|also|теперь|сейчас|пока|the number|the year|"
    rf"the date|number|год|цифры|номер)\s*[:—–-]?\s*)?"
    rf"[\"'«“„`]?{_VALUE}",
    re.IGNORECASE,
)
_BEFORE: Final = re.compile(
    rf"(?<![\w.:/+-]){_VALUE}[\"'»”`]?\s*(?:is|was|are|(?:—|–|-)(?:\s+это)?|это|as|как)\s+"
    r"(?:(?:the|my|his|her|our|their|your|a|мой|его|её|ее|их|наш|ваш|твой|[\w-]+['’]s|"
    r"новый)\s+)?(?P<noun>(?:[\w'’-]+\s+){0,3}?\S.*)",
    re.IGNORECASE,
)
_BLOCKING: Final = compile_pattern(
    r"""(?<![^\W_])(?:has|have|had|consists?|must|should|contains?|length|changed?|changes|changing|every|
    expires?|expired|
    takes?|took|cost|costs|arrives?|comes?\safter|since|until|till|before|after|within|year|review\w*|
    reviews|
    wrong|fail\w*|pads?|entry|terminal|machine|badge|badges|post\w*|wheel|asks?|asked|error|worked|works|
    work|forgot\w*|needs?|phone|call(?:ed|s)?|tel|number\sof|items|collection|room\s\d|
    состоит|содержит|долж\w+|поменял\w*|меня\w+|сменил\w*|изменил\w*|истека\w+|прид[её]т|приходит|
    работает|стоит|стоил\w*|забыл\w*|
    кажды\w+|через|после|до|с|году|год|года|году|длин\w+|требу\w+|ошибк\w+|ревью|квартир\w+\s\d|тел|
    звон\w+|позвон\w+|заказ\w*|
    товар\w*|город\w*|страны|региона|установил\w*|поставил\w*|не)(?![^\W_])"""
)
_CHANGED_TO: Final = compile_pattern(
    r"(?:chang\w+|set|reset|поменял\w*|сменил\w*|измен\w+|постав\w+|"
    r"установил\w*)(?:\s+[^\s\d]+){0,6}\s+(?:to|на)\s+$"
)
_PREPOSITION: Final = compile_pattern(
    r"[ ,]+(?:of|for|to|on|at|in|from|by|via|which|that|sent|i|he|she|they|we)\b"
)
_QUANTITY: Final = compile_pattern(
    r"""(?<![^\W_])(?:(?:январ|феврал|март|апрел|ма[йея]|июн|июл|август|сентябр|октябр|ноябр|
    декабр)[^\W_]{0,3}|
    (?:january|february|march|april|may|june|july|august|september|october|november|december)|since|after|
    before|until|till|every|within|in|by|at|over|under|about|around|than|
    up\sto|least|from|
    с|до|после|через|в|к|около|более|менее|больше|меньше|кажды[ей]|за|из|по|не\sменее|apartment|flat|room|
    квартир\w+|кв\.?|дом|
    \$|€|₽|£|terminal|iphone|galaxy|windows|version|верси\w+)\s*$"""
)
_HARMLESS: Final = compile_pattern(
    r"""(?:discount|promo|coupon|morse|currency|airport|iata|icao|python|java|legacy|machine|penal|civil|
    criminal|
    moral|cheat|class|course|project|department|vin|bic|iso|referral|invite|invitation|tracking|fault|
    trouble|obd|icd|
    merchant|hex|location|state|school|article|part|batch|lot|hs|customs|rate|fare|genetic|binary|sample|
    model|
    stock|product|supplier|vendor|client|customer|store|library|dial(?:l)?ing|cost|budget|job|activity|
    diagnosis|paint|
    postcode|sku|ean|upc|group|team|occupation|industry|http|response|return|event|ticket|voucher|gift|
    booking|reservation|order|flight|hotel\sbooking|book(?:ed)?|
    item|product|color|colour|tax|
    source|language|country|area|postal|zip|dress|error|status|exit|sort|branch|swift|bar|qr|промо\w*|
    скидк\w*|заказ\w*|
    почтов\w+|qr|штрих\w*|индекс\w*|регион\w*|страны|города|ошибк\w+|товар\w*)\s*$"""
)
_STAYING: Final = compile_pattern(
    r"""[^.;!?\d]{0,40}?\s(?:(?:has|had|have)\s(?:always\s|long\s)?been|(?:never|
    not)\schanged\s(?:it\s)?from|stays|stayed|remains|
    remained|used\sto\sbe|так\sи\s(?:остал\w+|стоит)|остал\w+|до\sсих\sпор|
    всегда\sбыл)\s[#*]?\d{4,8}[#*]?(?!\w|[.,:/-]\d)"""
)
_HINTED: Final = compile_pattern(
    rf"""[^.;!?:,\d]{{0,60}}?(?<!\w){HINT}(?!\w)[^.;!?:,\d]{{0,30}}?\s?(?:[:,(—–]|\s-)\s*
    [#*]?\d{{4,8}}[#*]?(?!\w|[.,:/-]\d)"""
)
_REPEATED: Final = compile_pattern(rf"[^.;!?\d]{{0,40}}?\s{REPEATED_DIGITS}")
_AT_END: Final = compile_pattern(
    r"""(?P<gap>[^.;!?\d:]{0,50}?)(?:\s?(?::|—|–|\s-)\s[#*]?\d{4,6}|(?:,|['’]s)\s(?!(?:19|
    20)\d\d)[#*]?\d{4,8}|
    \s\([#*]?\d{4,8}(?=\)))[#*]?\W*$"""
)
_COUNTED: Final = compile_pattern(
    r"""(?<!\w)(?:\d|four|five|six|eight|четыр\w+|пят\w+|шест\w+)[ -](?:digits?|
    цифр\w*)(?:\s\w+)?\s?(?:[,:—–(]|\s-)\s?[#*]?\d{4,8}
    (?![\w-]|[.,:/]\d|\s?(?:руб|евро|доллар|[€$£₽%])|\s[a-z]{3,}s\b)"""
)
_BY_CARD: Final = compile_pattern(
    r"""(?:card\s(?:security|verification)\scode|(?:three|3)[- ]digit\s(?:code|number)|
    (?:security\s)?code\son\sthe\sback|
    (?:тр[её]хзначн\w+\sкод|код\w{0,2}\s(?:на|с)\sоборот\w+)(?:\s(?:на\s)?(?:оборот\w+\s)?(?:моей\s|его\s|
    е[её]\s)?карт\w+)?)
    [^.;!?\d]{0,30}?\s\d{3}(?![\w-]|[.,:/]\d)"""
)
_CUE: Final = compile_pattern(
    r"""(?<!\w)(?:pins?|pin\scode|pass\s?codes?|password(?!\s(?:reset|manage|polic|change|list|leak|sto))|
    puk|combination|combo|codes?|unlock\w*|disarm\w*|
    (?:verification|authentication|login|
    one-time|security)\snumber|lets?\s(?:\w+\s){1,3}?in(?:to)?|letting\s\w+\sin|buzz\w*\s(?:\w+\s)?in|
    gets?\s(?:\w+\s)?(?:in|into|inside|through|past)|got\s(?:in|into|inside|past)|
    пин\w{0,2}|пин-код\w{0,2}|код\w{0,2}|парол(?:ь|я|ю|ем)|разблок\w+|комбинаци\w+|пуска\w+|впуска\w+|
    пуст\w+|номер\sдля\s(?:подтвержд|вход|авториз)\w+)(?!\w)"""
)
_THING_CUE: Final = compile_pattern(
    r"""(?<!\w)(?:doors?|gates?|garage|safe|vault|alarm|lockers?|padlock|suitcase|keypad|lockbox|barrier|
    intercom|shed|cellar|bike|diary|laptop|computer|
    phone|tablet|ipad|console|printer|terminal|drawer|cabinet|mailbox|letterbox|lift|elevator|storage|
    cash\sbox|toolbox|briefcase|trunk|
    сейф\w*|чемодан\w*|калитк\w+|ворот\w*|гараж\w*|зам(?:ок|к[аеуи]|ком)|шкаф\w*|домофон\w*|двер\w+|
    сигнализаци\w+|шлагбаум\w*|подъезд\w*|
    ячейк\w+|ключниц\w*|телефон\w*|ноут\w*|компьютер\w*|планшет\w*|айфон\w*|айпад\w*|принтер\w*|ящик\w*|
    кладов\w+|
    сара[йяе]\w*|дневник\w*)(?!\w)"""
)
_ACCESS_VERB: Final = compile_pattern(
    r"""(?<!\w)(?:open(?:s|ed|ing)?|locks?|locked|unlock\w*|listens?|responds?|reacts?|wakes?|starts?|
    enter\w*|punch\w*|typ(?:es?|ed|ing)|press\w*|dial\w*|
    key(?:s|ed|ing)?\sin|tap(?:s|ped|ping)?|quiet|silent|disarm\w*|открыва\w+|откры[тл]\w*|запира\w+|
    закрыва\w+|закрыт\w*|отпира\w+|
    набира\w+|набра\w+|ввод\w+|вв[её]л\w*|ввести|вбива\w+|жм[её]т|нажима\w+|снима\w+|отключа\w+|
    разблок\w+)(?!\w)"""
)
_TOLD: Final = re.compile(
    r"(?P<before>\b(?:listens|waits|asks|asking)\sfor\s|[:;,(—–=?\"“«#]\s?|\s-\s|"
    r"(?<![^\W_])[^\W\d_]+(?:['’]s)?\s)[#*]?(?P<number>\d{4,8}|(?-i:[A-Z])\d{4,6}|\d{3}[ -]\d{3}|"
    r"\d(?:[ -]\d){2,7}|"
    r"\d\d(?:-\d\d){1,3})[#*]?(?!\w|[.,:/]\d|-\w|\s\d)"
)
_NEAR: Final = 80
"""Maximum number of characters between a number and the words that make it a code."""

_TELLING: Final = split_word_list(
    """with on to via using is are was be as after enter enters entered entering type types typed typing
    punch punches punching dial dials dialling dialing press presses pressing tap taps simple same
    digits it's its be equals reads stays remains becomes became
    по на под это был была будет набрав набирает набирать набрать вводит вводить ввести ввёл ввел
    ввела жмёт просто цифры комбинацией комбинация комбинацию кодом код пином пин пин-код
    подтверждения входа авторизации"""
)
_TYPED_AT: Final = compile_pattern(
    r"(?<!\w)(?:ввод|набира|вбива|нажима)\w+\s(?:на|в|у)\s(?:[\w-]+\s)?[\w-]+\s[#*]?\d{4,8}[#*]?\W*$"
)
_LAST_TOKEN: Final = compile_pattern(
    r"""(?<!\w)код(?:а|ом)?\s(?:конференции|встречи|комнаты|доступа|вступления|постамата|посылки|
    подключения|приглашения)\s[^.;!?\d]{0,40}?
    (?=\S*\d)(?=\S*[A-Za-zА-Яа-я])[A-Za-zА-Яа-я\d]{5,12}\W*$"""
)
_ON_THING: Final = compile_pattern(
    r"""(?<!\w)(?:на|у|для)\s(?:[\w-]+\s){0,2}?(?:планшет|телефон|ноутбук|айфон|айпад|двер|калитк|ворот|
    сейф|домофон|подъезд|шлагбаум|дач|офис|
    гараж|замк|чемодан|кладовк|сигнализац)\w*\s(?:стоит\s)?(?:код|пин)\s[#*]?\d{4,8}[#*]?(?!\w|[.,:/-]\d|
    \sгод)"""
)
_CAME: Final = compile_pattern(
    r"""(?<!\w)(?:приш[её]л|пришл\w|прислал\w?|получил\w?|скинул\w?)\s[^.;!?\d]{0,20}?(?:\d{3}[ -]\d{3}|
    \d{4,8})
    (?!\w|[.,:/-]\d|\s?(?:руб|₽|евро|[€$£%])|\s[а-яё]{2,}(?:ов|ев|ей|ем|ек|ок|ий|ка|ик|им)(?!\w))
    [^.;!?\d]{0,20}?(?<!\w)(?:вход|подтвержд|логин|регистрац|авториз|код)"""
)
_ELSEWHERE: Final = compile_pattern(
    r"""(?<!\w)(?:call\w*|phone\snumber|tel|order|error|wrong|machine|terminal|room|flight|year|звон\w+|тел|
    заказ\w*|ошибк\w+|street|road|avenue|address|улиц\w*|
    терминал\w*|год\w*)(?!\w)"""
)
_TEXTED: Final = compile_pattern(
    r"""\b(?:text|sms|text\smessage|message|push|robocall|call|e-?mail)\b[^.;!?\d]{0,30}?
    \s(?!(?:19|20)\d\d\s)(?:\d{4,8}|\d{3}[ -]\d{3})
    (?![\w-]|[.,:/]\d|\s[a-z]+s\b)[^.;!?\d]{0,20}\b(?:confirm|log|sign|verif|approv|authori[sz]|access|
    activat|regist)"""
)
_OTHER_CODE: Final = compile_pattern(
    r"""\s(?:reviews?|base|bases|name|names|golf|club|camp|school|freeze|size|count|length|style|smell|
    coverage|quality|generation|editor|comments?|lines?|snippets?|examples?|pads?|entry|letter|
    ревью|города|страны|региона|ошибки|товара|проекта|заказа|урока|бронирования|отправления|скидки|купона|
    валюты|подразделения|группы|краски|
    модели|налоговой|предмета|классификатора|детали|оквэд|кбк|окпо|октмо|тн|причины|операции|услуги|
    организации|продавца|мсс|mcc)(?!\w)"""
)
_PRICED: Final = compile_pattern(
    r"\s?(?:[€$£₽%]|рубл\w*|руб|тысяч\w*|к\b|euros?|dollars?|pounds?|bucks|kg|km|кг|км|mah|[kmgt]b|"
    r"[кмгт]б|[mg]hz|rpm|ма\w?ч)"
)
_YOURS: Final = compile_pattern(
    r"""(?:\b(?:your|my|his|her|their)\s(?P<of>(?:[\w-]+\s){0,2})code\s*(?:is|:|=|—|–|-)\s*|
    (?<!\w)(?:ваш|твой)\sкод(?:\s[^\W\d]{2,15}){0,3}?\s*(?:[:—–-]|это)?\s*)[#*]?\d{4,8}(?!\w|[.,:]\d|
    -\d{3}-)"""
)
"""A code in the wording of the message that brings it: "Your Uber code is 4471"."""

_MENTIONED: Final = list_beginnings(
    """code pass pin pins pinc puk cvv cvc cvn otp otps totp combo combination authentic authy domofon
    security digits open unlock disarm lock goes turns turn turned number let lets letting enter punch
    type typing typ press listens responds text sms message call email mail dial tap taps tapping key
    keys keyed buzz get gets got getting starts wakes reacts quiet silent
    код кода коды коду кодо пин пины пина пину пино пинк пук цвв комбинация аутентификатор домофон
    подъезд замок замк номер пароль пуска впуска пуст закр запер запир ввод ввел ввёл ввести цифр приш
    присл получ скинул откры отпира отпер снима снят снял снять сня разблок отключ набира набра нажа
    нажм жмёт жмет вбив смскод смс"""
)
"""Beginnings of words. The rules about codes run only on a text that has one of them."""

_DIGITS: Final = re.compile(r"\d{2}|\d[ -]\d|\d\w", re.IGNORECASE)

_CVV: Final = compile_pattern(r"(?:cvv2?|cvc2?|cvn|цвв|security number|security digits)")
_DATE_AFTER: Final = re.compile(
    r"[./:,]\d|\s*[-–]\s*\d{1,2}\s*[./]|\d|\s?(?:am|pm)\b|\s+(?:году|года|год)\b", re.IGNORECASE
)
_MONTHS: Final = compile_pattern(
    r"\s+(?:january|february|march|april|may|june|july|august|september|october|november|"
    r"december|январ\w+|феврал\w+|марта|"
    r"апрел\w+|мая|июн\w|июл\w|август\w*|сентябр\w+|октябр\w+|ноябр\w+|декабр\w+)"
)


def says_code(text: str) -> bool:
    """Return whether a text gives a code, such as a PIN, a one-time code or the code of a door."""
    if not (_DIGITS.search(text) or has_number_word(text)) or not has_word(text, _MENTIONED):
        return False
    for noun in _NOUN.finditer(text):
        named = noun[0].rpartition(" ")[0]
        if _HARMLESS.search(named or text[max(0, noun.start() - 30) : noun.start()]):
            continue
        if _is_given_after(text, noun) or _is_given_later(text[noun.end() : noun.end() + 160]):
            return True
    if any(not _HARMLESS.search(found["of"] or "") for found in _YOURS.finditer(text)):
        return True
    for noun in _BARE_NOUN.finditer(text):
        rest = text[noun.end() : noun.end() + 24]
        if re.match(
            r"\s*(?:is|was|:|=|—|–|-|это)\s*[\"'«“]?\d{4,8}(?![\w.,:/-]\w|\w)", rest, re.IGNORECASE
        ) and not UNIT.match(rest[rest.rfind(" ") :]):
            return True
    if any(_is_given_before(found) for found in _BEFORE.finditer(text)) or _has_code_in_action(text):
        return True
    return any(
        _is_in_code_position(found)
        and _speaks_of_access(
            text[max(0, found.start() - _NEAR) : found.end() + _NEAR], is_aside=found["before"][0] == ","
        )
        for found in _TOLD.finditer(text)
    )


def _speaks_of_access(text: str, *, is_aside: bool) -> bool:
    """Return whether a text speaks of a code or of entering, or names a thing that is opened or locked.

    Args:
        text: the text around a number.
        is_aside: whether the number follows a comma; then the thing does not count.
    """
    for cue in _CUE.finditer(text):
        around = text[max(0, cue.start() - 30) : cue.start()]
        is_harmless = _HARMLESS.search(around) or _OTHER_CODE.match(text[cue.end() :])
        if not is_harmless:
            return True
    return not is_aside and _THING_CUE.search(text) is not None and _ACCESS_VERB.search(text) is not None


def _is_in_code_position(match: re.Match[str]) -> bool:
    """Return whether a number stands where a code would.

    A code follows punctuation, "asks for", "listens for" or "waits for", or a word such as "with".
    Quantities, dates, prices, most years, and numbers shortly after a word such as "order" do not count.
    """
    before, number, rest = match["before"].strip().lower(), match["number"], match.string[match.end() :]
    if any(rule.match(rest) for rule in (UNIT, COUNTED, _MONTHS, _DATE_AFTER, _PRICED)):
        return False
    if _ELSEWHERE.search(match.string[max(0, match.start() - 24) : match.start("number")]):
        return False
    if re.fullmatch(r"(?:19|20)\d\d", number) and before not in (
        "with",
        "enter",
        "enters",
        "кодом",
        "код",
        "пин",
        "пином",
        ":",
    ):
        return False
    return before in _TELLING or " " in before or not before[-1].isalpha()


def _is_given_after(text: str, noun: re.Match[str]) -> bool:
    """Return whether a code follows a noun such as "PIN": "the PIN of the card is 3906"."""
    rest = text[noun.end() : noun.end() + 160]
    changed = re.match(
        r"(?P<gap>(?:\s+[^\s\d]+){0,6}?)\s+(?:to|на)\s+(?P<value>[#*]?\d[\d -]{2,10}\d)(?![\w.:/-]*\d)", rest
    )
    if changed and _CHANGED_TO.search(text[max(0, noun.start() - 60) : noun.end() + changed.start("value")]):
        return not UNIT.match(rest[changed.end() :])
    given = _AFTER.match(rest)
    if given is None or is_placeholder(given["value"]):
        return False
    gap, value = given["gap"], given["value"]
    has_sign = bool(given["sign"].strip())
    if _BLOCKING.search(gap) and not gap.strip().lower().startswith(("с ", "до ")):
        return False
    before_value = rest[: given.start("value")]
    if not has_sign and gap.isascii() and gap.strip() and not _PREPOSITION.match(gap):
        return False
    if not has_sign and re.fullmatch(r"(?:19|20)\d\d", value) and re.search(r"\bof\s$", before_value):
        return False
    if not has_sign and _QUANTITY.search(before_value):
        return False
    after = rest[given.end() :]
    if UNIT.match(after) or _DATE_AFTER.match(after) or _MONTHS.match(after):
        return False
    return _is_code(value, is_cvv=_CVV.fullmatch(noun[0]) is not None, has_sign=has_sign)


def _is_given_later(rest: str) -> bool:
    """Return whether the text after a noun has its code later: "the PIN is the same on every card: 3906"."""
    if _STAYING.match(rest) or _HINTED.match(rest) or _REPEATED.match(rest):
        return True
    ended = _AT_END.match(rest)
    return ended is not None and not _ELSEWHERE.search(ended["gap"])


def _is_code(value: str, *, is_cvv: bool, has_sign: bool) -> bool:
    digits = sum(map(str.isdigit, value))
    if re.fullmatch(SPOKEN_NUMBERS, value, re.IGNORECASE):
        return True
    is_combination = re.fullmatch(r"\d{1,2}(?:-\d{1,2}){2,5}", value) is not None
    if not is_combination and (is_ordinary(value) or is_ordinary(value.lower())):
        return False
    if any(map(str.isalpha, value)):
        return digits >= 2 and len(value) >= 4
    return digits >= 4 or (digits == 3 and (is_cvv or has_sign))


def _is_given_before(match: re.Match[str]) -> bool:
    """Return whether a code precedes a noun such as "PIN": "3906 is the PIN"."""
    noun = match["noun"]
    is_named = _NOUN.match(noun) is not None or _contains_code_noun(noun)
    return is_named and _is_code(match["value"], is_cvv=False, has_sign=True)


def _contains_code_noun(noun: str) -> bool:
    """Return whether a noun such as "PIN" begins within the first four words of the text `noun`."""
    head = " ".join(noun.split()[:4])
    found = _NOUN.search(f"{head} {' '.join(noun.split()[4:8])}")
    return found is not None and not _HARMLESS.search(noun[: found.start()]) and found.start() <= len(head)


def _has_code_in_action(text: str) -> bool:
    """Return whether a text gives a code with the action that brings or uses it: "typed the code 4471"."""
    return any(
        rule.search(text)
        for rule in (_BY_MESSAGE, _TEXTED, _CAME, _COUNTED, _BY_CARD, _ON_THING, _LAST_TOKEN, _TYPED_AT)
    )


_BY_MESSAGE: Final = compile_pattern(
    r"""(?:(?:смс\w*|sms\w*|сообщени\w+|пуш\w*)[^.!?\d]{0,30}\sкод\s*(?:подтверждения|
    для\sвхода)?\s*[:—–-]?\s*\d{4,8}|
    (?<!\w)код\s\d{4,8}\s[^.!?\d]{0,20}(?:смс|sms|сообщени|вход|подтвержд)|
    \bcode\s\d{4,8}\s[^.!?\d]{0,20}(?:sms|text|log|sign)|
    (?<!\w)(?:откры|закры|закрыв|запер|отпер|разблок|снима|снят|сня|отключ|вош|войти|вход|заход|вв[её]|
    ввод|набра|набира|наберите|присл|присыл|
    пришл|приш[её]л|получ|продикт|назв|назы|сказ|сообщ|отправ|скинул|дал|нужен|требует|
    понадоб)\w*[^.!?\d]{0,40}?(?<!с\s)(?<!промо)(?<!qr-)(?<!\w)код\w{0,2}
    (?:\s(?:подтверждения|доступа|для\sвхода))?\s*[:—–-]?\s*[#*]?(?:\d{3,8}|\d(?:[ -]\d){3,7})|
    (?<!\w)(?<!с\s)кодом\s[#*]?\d{3,8}|
    \b(?:opens?|opened|unlock\w*|disarm\w*|enter\w*|dial\w*|typ(?:es?|ed|ing)|punch\w*|use[sd]?|using|
    sent|texted|text|sms|received|got|gets|gave|told|reads?|shared|forwarded|needs?|requires?)
    [^.!?\d]{0,40}?(?<!error\s)(?<!area\s)(?<!postal\s)(?<!zip\s)(?<!promo\s)(?<!country\s)(?<!discount\s)
    (?<!coupon\s)(?<!booking\s)
    (?<!status\s)(?<!exit\s)(?<!voucher\s)(?<!referral\s)(?<!tax\s)(?<!product\s)(?<!dialling\s)(?<!dialing\s)
    \bcode\s*[:—–-]?\s*[#*]?(?:\d{4,8}|\d(?:[ -]\d){3,7})|
    \b(?:gate|door|safe|alarm|garage|padlock|locker|suitcase|phone|tablet|lock|barrier|
    vault)\b[^.!?\d]{0,30}\b(?:opens?|unlocks?|disarms?|is\s(?:opened|unlocked|disarmed)|goes\soff|locked|
    turns\soff)
    \s(?:with|by|to|when\syou\s(?:type|enter|dial))\s(?:the\s)?(?:digits\s|code\s)?[#*]?\d{3,8}|
    (?<!\w)(?:калитк|двер|планшет|ноутбук|ноут|айфон|шкафчик|сейф|ворот|замок|замк|шлагбаум|чемодан|
    телефон|гараж|сигнализац|домофон|подъезд)\w*[^.!?\d]{0,40}(?:открыва|отпира|снима|разблокир|отключа|
    набира|набрать|нажать|нажм)\w*
    \s(?:\w+\s)?(?:по\s|на\s|с\s)?(?:цифр\w+\s|комбинаци\w+\s|кнопк\w+\s)?[#*]?\d{3,8}|
    (?:authenticator|authy|аутентификатор\w*)[^.;!?\d]{0,30}\d{3}[ ]?\d{3}|(?:код\w*|домофон\w*|
    подъезд\w*)[^.;!?]{0,20}?\s\d{1,4}[ ]?[кk][ ]?\d{2,6}|
    [,(]\s(?:code|код)\s*[:—–-]?\s*[#*]?\d{4,8}|
    (?:combination|комбинаци\w+)[^.!?\d]{0,30}\s\d{1,2}(?:[ -]\d{1,2}){2,3})(?!\w|[.,:]\d)(?!\s?(?:руб|₽|
    €|\$|%|км|раз))"""
)
