"""Detection of identity document numbers: passports, national, tax and insurance ids, driving licences."""

import re
from typing import Final

from mnemon_consumers.domain.policy.secrets.values import SPOKEN_NUMBER, SPOKEN_NUMBERS
from mnemon_consumers.domain.policy.wording import compile_pattern

_SIGN: Final = r"(?:\s?(?:no|nr|num|ser|сер|ном)\.)?[^.;!?\n\d]{0,45}?"
_START: Final = r"(?<![\w+$€£₽./:-])"
_END: Final = r"(?![\w/]|[.:]\d|\s?(?:€|\$|£|₽|руб\w*|rub\w*|dollars|euros|usd|eur)(?!\w))"
_NUMBER: Final = (
    rf"{_START}(?=(?:[A-Z-]*\d){{5}})[A-Z\d][A-Z\d-]{{4,19}}{_END}|"
    rf"{_START}\d(?:[ -]?\d){{5,15}}(?:[ -]?[A-Z])?{_END}"
)

_PASSPORT: Final = compile_pattern(
    rf"""\bpassports?\b{_SIGN}(?:{_START}[A-Z]{{0,3}}\s?\d{{6,9}}[A-Z]?{_END}|
    {_START}(?=[A-Z\d]*\d[A-Z\d]*\d)(?=[A-Z\d]*[A-Z])[A-Z\d]{{8,10}}{_END}
    |{_START}\d{{2}}\s?\d{{2}}\s?(?:\#|no\.?|n)?\s?\d{{6}}{_END})|
    (?<!\w)(?:паспорт\w*|загран\w*|
    серия){_SIGN}(?:сери[яи]\s*)?{_START}(?:\d{{2}}[ -]?\d{{2}}[\s,]*(?:номер|no?|\#|-)?\s*\d{{3}}\s?\d{{3}}
    |\d{{2}}[\s,]*(?:номер|no?|\#)?\s*\d{{7}}|[A-ZА-Я]{{1,2}}\s?\d{{6,8}}|\d{{6,9}}){_END}"""
)
_SOCIAL_SECURITY: Final = compile_pattern(
    rf"\b(?:ssn|social security(?: number| no\.?|"
    rf" card)?)\b{_SIGN}{_START}\d{{3}}[ -]?\d{{2}}[ -]?\d{{4}}{_END}"
)
_SPOKEN_SSN: Final = compile_pattern(
    rf"""\b(?:ssn|social\ssecurity(?:\snumber|\sno\.?)?)\b[^.;!?\d]{{0,20}}?\s(?:{SPOKEN_NUMBERS}|
    \d{{3}})[\s,-]+
    (?:(?:{SPOKEN_NUMBERS}|{SPOKEN_NUMBER}|\d{{2}})[\s,-]+)?\d{{4}}{_END}|
    \b(?:my|his|her|their)\ssocial(?:\sis|:)?\s\d{{3}}[ -]\d{{2}}[ -]\d{{4}}{_END}"""
)
_FORMATTED_SSN: Final = re.compile(r"(?<![\w.+-])\d{3}-\d{2}-\d{4}(?![\w-])")
_NATIONAL_INSURANCE: Final = re.compile(
    r"(?<![\w-])(?!BG|GB|NK|KN|TN|NT|ZZ)(?:QQ|[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z])"
    r" ?\d{2} ?\d{2} ?\d{2} ?[A-D](?![\w-])"
)
_NOT_INSURANCE: Final = compile_pattern(
    r"(?:order|part|model|flight|tracking|ticket|serial|заказ|модель|рейс|билет)"
)
_LICENCE: Final = compile_pattern(
    rf"""\b(?:driv(?:er['’]?s?|ing)\s(?:licen[cs]e|permit|id)|dl\s(?:no|number))\b{_SIGN}(?:{_NUMBER}|
    {_START}\d{{2}}\s?[A-ZА-Я\d]{{2}}\s?\d{{6}}{_END})|
    (?<!\w)(?:водительск\w+|права|ву|
    в/у)(?!\w){_SIGN}{_START}\d{{2}}\s?[А-ЯA-Z\d]{{2}}\s?\#?\s?\d{{6}}{_END}"""
)
_IDENTITY: Final = compile_pattern(
    rf"""\b(?:(?:national|personal|citizen|tax|taxpayer|identity|government|state|insurance)(?:\s(?:id|
    identity|identification|insurance|health))*
    (?:\scard)?(?:\s(?:id|number|no\.?|code))?|id\s(?:card|number)(?:\snumber)?|identity\s(?:card|
    document)|i?tin|cpf|pesel|bsn|dni|nie|nif|nino|oib|cnp|
    codice\sfiscale|steuer-?(?:id|nummer)|personalausweis|aadhaar|aadhar|pan\scard|nhs(?:\s(?:number|
    no\.?))?|medicare(?:\snumber)?|
    social\sinsurance(?:\snumber)?|personnummer|green\scard|visa\snumber|residence\spermit|military\sid|
    birth\scertificate|curp|rfc|emirates\sid|
    health\sinsurance(?:\snumber)?|voter\sid)(?![^\W_]){_SIGN}(?:{_NUMBER}|
    {_START}\d{{3}}\.\d{{3}}\.\d{{3}}-\d{{2}}{_END}|{_START}\d{{2,4}}(?:[ /-]\d{{2,6}}){{1,4}}{_END})"""
)
_RUSSIAN: Final = compile_pattern(
    rf"""(?<!\w)(?:снилс\w*|страхов\w+\sномер\w*){_SIGN}\d{{3}}[ -]?\d{{3}}[ -]?\d{{3}}[ -]?\d{{2}}{_END}|
    (?<!\w)инн(?!\w)(?![^.;!?\n\d]{{0,45}}?(?:компани|организаци|ооо|оао|ао|фирм|юрлиц|
    работодател)){_SIGN}{_START}\d{{4}}\s?\d{{4}}\s?\d{{4}}{_END}|
    (?<!\w)(?:(?:полис\w*|омс|дмс)(?:\s+(?:омс|дмс))?){_SIGN}{_START}\d(?:[ -]?\d){{8,15}}{_END}|
    (?<!\w)(?:свидетельств\w+\sо\sрождении|военн\w+\sбилет\w*|удостоверени\w+|
    вид\w{{0,2}}\sна\sжительство|внж|идентификационн\w+\s(?:номер|код)\w*|
    id-?карт\w*|айди\sкарт\w*){_SIGN}(?:{_NUMBER}|
    {_START}[A-ZА-Я]{{1,4}}[ -]?(?:[А-Я]{{2}}[ -]?)?(?:\#\s?)?\d{{6,9}}{_END}|
    {_START}\d{{2}}\s?\d{{2}}\s?\#?\s?\d{{6}}{_END})"""
)
_FORMATTED_SNILS: Final = re.compile(r"(?<![\w+-])(\d{3})-(\d{3})-(\d{3})[ -](\d{2})(?![\w-])")
_FORMATTED_CPF: Final = re.compile(r"(?<![\w.-])\d{3}\.\d{3}\.\d{3}-\d{2}(?![\w-])")
_INDIAN: Final = re.compile(r"(?<![A-Za-z0-9])[A-Z]{5}\d{4}[A-Z](?![A-Za-z0-9])")
_ONE_YEAR: Final = re.compile(r"\D*(?<!\w)\d{4}(?!\w)\D*")
_BEFORE: Final = compile_pattern(
    rf"""(?:{_NUMBER}|{_START}\d{{2}}\s?\d{{2}}\s\d{{6}}{_END})\s*(?:is|was|—|–|-|
    это)\s+(?:это\s+)?(?:[\w'’-]+\s+){{0,3}}?
    (?:passport|ssn|social\ssecurity|driving\slicen[cs]e|driver['’]s\slicen[cs]e|national\sid|tax\sid|
    id\scard|паспорт\w*|загран\w*|снилс|инн|водительск\w+|полис\w*)
    (?![^\W_])"""
)
_ELSEWHERE: Final = compile_pattern(
    r"""\b(?:phone|tel|call|office\s(?:phone|number)|fee|price|cost|costs|order|photo|appointment|
    application\sno|tracking)(?!\w)|
    (?<!\w)(?:тел|телефон\w*|звон\w+|стоит|цена|пошлин\w+|заказ\w*|заявлен\w+|запис\w+)(?!\w)"""
)


def find_document(text: str) -> str | None:
    """Return the kind of document number in a text, such as "a passport's number"; None if it has none."""
    if _ONE_YEAR.fullmatch(text):
        return "a social security number" if _SPOKEN_SSN.search(text) else None
    if _NATIONAL_INSURANCE.search(text) and not _NOT_INSURANCE.search(text):
        return "a national insurance number"
    if any(_is_social_security(found[0]) for found in _FORMATTED_SSN.finditer(text)):
        return "a social security number"
    if any(_is_snils("".join(found.groups())) for found in _FORMATTED_SNILS.finditer(text)):
        return "the number of an identity document"
    if _FORMATTED_CPF.search(text) or ("PAN" in text and _INDIAN.search(text)):
        return "the number of an identity document"
    for what, rule in (
        ("a passport's number", _PASSPORT),
        ("a social security number", _SOCIAL_SECURITY),
        ("a social security number", _SPOKEN_SSN),
        ("a driving licence's number", _LICENCE),
        ("the number of an identity document", _IDENTITY),
        ("the number of an identity document", _RUSSIAN),
        ("the number of an identity document", _BEFORE),
    ):
        if any(not _ELSEWHERE.search(found[0]) for found in rule.finditer(text)):
            return what
    return None


def _is_social_security(number: str) -> bool:
    from stdnum.us import ssn

    return ssn.is_valid(number)


def _is_snils(digits: str) -> bool:
    """Return whether the last two digits are the checksum of a SNILS, a Russian insurance number."""
    total = sum(int(digit) * (9 - place) for place, digit in enumerate(digits[:9]))
    return (total % 101) % 100 == int(digits[9:])
