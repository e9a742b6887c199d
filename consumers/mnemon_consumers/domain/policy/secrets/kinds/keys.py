"""Detection of keys and tokens, and of passwords in addresses.

The rules know the formats of providers, words beside a value such as "API key", and random values.
"""

import re
from collections import Counter
from functools import cache
from importlib import import_module
from itertools import pairwise
from math import log2
from typing import TYPE_CHECKING, Final

from mnemon_consumers.domain.policy.secrets.values import is_ordinary, is_placeholder
from mnemon_consumers.domain.policy.wording import compile_pattern

if TYPE_CHECKING:
    from detect_secrets.plugins.base import RegexBasedDetector

_RULES: Final = {
    "a private key": compile_pattern(
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY|PuTTY-User-Key-File|AGE-SECRET-KEY-1\w{10}|"
        r"\b[xyz]prv[1-9A-HJ-NP-Za-km-z]{50,}"
    ),
    "an API key": compile_pattern(
        r"""(?<![\w-])(?:sk|rk|pk)[-_](?:(?=[\w-]*\d)[\w-]{8,}|[A-Za-z]{16,}|(?:live|test|ant|proj|or|
        svcacct)[-_]\w{6,})|
        \bAIza[\w-]{30,}|\bhf_[A-Za-z0-9]{30,}|\b(?:gsk|r8|figd|lin_api|nvapi|pplx|xai|ntn|dop_v1|glsa|
        shp(?:at|ss|ca)|dckr_pat|rnd|sbp|whsec|phc)[_-](?=\w*\d)\w{16,}|
        \b(?:glpat|tskey-\w+|hvs|ATATT3x\w)[-.]?(?=[\w-]*\d)[\w-]{16,}|\bGOCSPX-[\w-]{20,}|
        \bya29\.[\w-]{20,}|\by[0-3]_[\w-]{30,}|\bAQVN[\w-]{30,}|
        \bkey-[0-9a-f]{32}\b|\b1//0[\w-]{20,}|\bEAA[A-Z]\w{30,}|\bSG\.[\w-]{16,}\.[\w-]{16,}"""
    ),
    "a bearer token": compile_pattern(
        r"""\bbearer[\s:]+(?:(?=\S*\d)[\w.~+/=-]{8,}|[\w.~+/=-]{24,})|
        \bauthorization\s*[:=]\s*(?:bearer|basic|token)\s+\S{6,}"""
    ),
    "a JSON web token": re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}"),
    "an access token": compile_pattern(
        r"""\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|xox[abeoprs]-[\w-]{10,}|xapp-\d-[\w-]{10,})|
        (?<!\w)\d{7,11}:[\w-]{30,}|\b[MNO][A-Za-z\d_-]{22,28}\.[\w-]{5,7}\.[\w-]{25,}|
        hooks\.slack\.com/services/T\w+/B\w+/\w+|discord(?:app)?\.com/api/webhooks/\d+/[\w-]{20,}|
        \b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b|\w{3}8Q~[\w.~-]{30,}|\bnpm_\w{30,}|\bpypi-\w{16,}"""
    ),
    "a key of a storage account": compile_pattern(
        r"(?:AccountKey|SharedAccessKey|SharedAccessSignature)\s*=\s*\S{16,}|[?&;]sig=[\w%+/=-]{20,}"
    ),
    "a session token": compile_pattern(
        r"\b(?:session(?:id|_id)?|PHPSESSID|JSESSIONID|connect\.sid|auth_?token|refresh_?token|"
        r"csrf_?token)\s*[=:]\s*[\"']?(?=\S*\d)[\w.%+/-]{16,}"
    ),
}
_DETECTORS: Final = {
    "aws": "AWSKeyDetector",
    "azure_storage_key": "AzureStorageKeyDetector",
    "cloudant": "CloudantDetector",
    "discord": "DiscordBotTokenDetector",
    "github_token": "GitHubTokenDetector",
    "gitlab_token": "GitLabTokenDetector",
    "ibm_cloud_iam": "IbmCloudIamDetector",
    "ibm_cos_hmac": "IbmCosHmacDetector",
    "jwt": "JwtTokenDetector",
    "mailchimp": "MailchimpDetector",
    "npm": "NpmDetector",
    "openai": "OpenAIDetector",
    "private_key": "PrivateKeyDetector",
    "pypi_token": "PypiTokenDetector",
    "sendgrid": "SendGridDetector",
    "slack": "SlackDetector",
    "softlayer": "SoftlayerDetector",
    "square_oauth": "SquareOAuthDetector",
    "stripe": "StripeDetector",
    "telegram_token": "TelegramBotTokenDetector",
    "twilio": "TwilioKeyDetector",
}
"""Detectors of detect-secrets that know the format of a kind of key.

The table leaves out detectors that guess from names in source code, because `secret: ...` may be an ordinary
sentence; detectors of public addresses; those of passwords in addresses and of random values, for which this
module has rules; and Artifactory's detector, which matches "APChemistry".
"""

_CONNECTION: Final = re.compile(
    r"\b[a-z][a-z0-9+.-]{1,20}://[^\s:/@]{0,60}:(?P<password>[^\s/@]{1,100})@[^\s@]", re.IGNORECASE
)
_PLACEHOLDERS: Final = frozenset(("password", "pass", "pw", "secret", "пароль", "xxx", "xxxx"))

_NAMED: Final = compile_pattern(
    r"""(?:\b(?:api|access|secret|auth|private|client|bot|service|account|storage|license|licence|product|
    activation|signing|encryption|
    webhook|deploy|session|refresh|subscription|personal access|admin|master|ssh|aws|gcp|azure|stripe|
    openai)
    (?:[ _-](?:api|access|secret|auth|shared|bot))*[ _-]?(?:keys?|tokens?|secret)|\bcredentials?|
    \bsecret(?:\skey)?|\btokens?|(?<!\w)токен\w{0,2}|
    (?<!\w)(?:секретн\w+|приватн\w+|закрыт\w+|лицензионн\w+|api|апи|aws|
    openai)[ -](?:api[ -])?ключ\w{0,2}|(?<!\w)ключ\w{0,2}\s(?:api|апи|доступа|активации|лицензии|от\sapi|
    к\sapi)|
    (?<!\w)секрет\w{0,2})(?![^\W_])
    (?:\s(?:for|of|to|from|in|on|от|для|к|на|из)(?:\s[^\s:=\d]{1,30}){1,4}?|
    (?:\s[^\W\d_]{2,15}){1,3}(?=\s?[:=—–])|
    \s(?:aws|gcp|azure|github|gitlab|stripe|slack|telegram|openai|google|firebase|discord|hugging\sface|
    яндекс\w*|бота))?
    [\"']?\s*(?:[:=]|\bis\b|—|–|-|\bэто\b|\bnow\b)*\s*[\"'«“]?
    (?P<value>(?=[^\s\"'»”]*\d)(?=[^\s\"'»”]*[a-zA-Z])[\w.~+/=-]{10,})"""
)
_ASSIGNED: Final = re.compile(
    r"(?i)\b[A-Z0-9_]*(?:SECRET|TOKEN|API_?KEY|ACCESS_?KEY|"
    r"PRIVATE_?KEY)[A-Z0-9_]*[\"']?\s*[=:]\s*[\"']?(?P<value>(?=\S*\d)[\w.~+/=-]{8,})"
)

_KEY_LIKE: Final = compile_pattern(
    r"(?<![!-~])(?=[!-~]*[\d_=+/:.-])[!-~]{8,}|bearer|[!-~]{16,}|\w{3,}[«\"'“„:=][!-~]{8,}"
)
"""Cheap check before the slow rules, which only match a text with a token that is long or is not a word."""

_SHORTEST: Final = 8
_LONG: Final = 16
"""Minimum number of characters of a key of letters only; for a key with digits or signs, see `_SHORTEST`."""

_LONG_TOKEN: Final = re.compile(r"[!-~]{16,}")
_HEXADECIMAL: Final = re.compile(r"(?<![0-9A-Za-z])(?:0x)?[0-9a-f]{32,}(?![0-9A-Za-z])", re.IGNORECASE)
_RANDOM: Final = re.compile(r"(?<![\w+/=.@:-])[A-Za-z0-9+/_-]{32,}={0,2}(?![\w@])")
_BITCOIN_KEY: Final = re.compile(
    r"(?<![0-9A-Za-z])(?:5[HJK][1-9A-HJ-NP-Za-km-z]{49}|[KL][1-9A-HJ-NP-Za-km-z]{51})(?![0-9A-Za-z])"
)
_PUBLIC: Final = compile_pattern(
    r"""(?<![^\W_])(?:commit\w*|checksums?|hash\w*|sha-?\d*|sha1sum|sha256sum|md5\w*|crc\d*|blake\w*|
    digests?|blobs?|images?|etags?|uuids?|guids?|
    revisions?|rev|tags?|build\w*|releases?|branch\w*|merge\w*|git|docker|containers?|traces?|spans?|
    request\sid|object\sid|ids?|
    fingerprints?|thumbprints?|public\skey|torrents?|magnet|infohash|ipfs|cid|address\w*|wallets?|
    contracts?|transactions?|tx|txid|
    snapshots?|backups?|files?|archives?|iso|layers?|manifest|integrity|playlists?|videos?|serial|
    коммит\w*|хеш\w*|хэш\w*|контрольн\w+\sсумм\w+|чексумм\w*|дайджест\w*|отпечат\w+|образ\w*|сборк\w+|
    релиз\w*|ревизи\w+|тег\w*|ветк\w+|
    торрент\w*|магнет\w*|кошел\w+|адрес\w*|контракт\w*|транзакци\w+|файл\w*|архив\w*|идентификатор\w*|
    контейнер\w*|трасс\w+|
    публичн\w+\sключ\w*|открыт\w+\sключ\w*|снимк?\w*|снапшот\w*)(?![^\W_])|sha\d+[:-]|sha256:"""
)
_PRIVATE: Final = compile_pattern(
    r"""(?<![^\W_])(?:(?:secret|private|api|access|encryption|master|signing|session)\w*|(?<!public\s)key|
    tokens?|passwords?|
    секретн\w+|приватн\w+|закрыт\w+|токен\w*|(?<!публичный\s)(?<!открытый\s)ключ\w*|парол\w+)(?![^\W_])"""
)


def find_key(text: str) -> str | None:
    """Return the kind of key or token in a text, or "a password in an address"; None if it has neither."""
    if not _has_token(text) or _KEY_LIKE.search(text) is None:
        return None
    for what, rule in _RULES.items():
        if rule.search(text):
            return what
    if any(_is_password(found["password"]) for found in _CONNECTION.finditer(text)):
        return "a password in an address"
    has_digit = any(map(str.isdigit, text))
    if has_digit and any(
        _is_key(found["value"]) for rule in (_NAMED, _ASSIGNED) for found in rule.finditer(text)
    ):
        return "a key or a token"
    if _BITCOIN_KEY.search(text):
        return "a private key"
    is_public = _PUBLIC.search(text) is not None and _PRIVATE.search(text) is None
    if not is_public and _HEXADECIMAL.search(text):
        return "a key in hexadecimal digits"
    if not is_public and any(_is_random(found[0]) for found in _RANDOM.finditer(text)):
        return "a random key"
    if _LONG_TOKEN.search(text) is None:
        return None
    for detector in _open_detectors():
        if any(detector.analyze_string(text)):
            return f"a secret ({detector.secret_type})"
    return None


def _has_token(text: str) -> bool:
    """Return whether a text may have a key: a very long word, a token that is not a word, or "bearer".

    The check is cheaper than a search for keys.
    """
    tokens = [token for token in text.split() if len(token) >= _SHORTEST]
    return (
        any(len(token) >= _LONG or not token.rstrip(".,;!?)").isalpha() for token in tokens)
        or "bearer" in text.lower()
    )


def _is_password(password: str) -> bool:
    return not is_placeholder(password) and password.lower() not in _PLACEHOLDERS


def _is_key(value: str) -> bool:
    return (
        not is_ordinary(value)
        and not is_ordinary(value.rstrip(".,;"))
        and not re.fullmatch(r"[\w-]+(?:\.[a-z]{2,4})", value)
    )


def _is_random(token: str) -> bool:
    """Return whether capitals, small letters and digits alternate and vary more than in a name or a path."""
    if token.startswith("AAAA") or token.count("/") > 3 or token.count("-") > 5:
        return False
    kinds = [sum(map(test, token)) for test in (str.isdigit, str.isupper, str.islower)]
    changes = sum(_name_kind(one) != _name_kind(other) for one, other in pairwise(token))
    if kinds[0] < 1 or min(kinds[1:]) < 4 or changes < 0.36 * len(token):
        return False
    return -sum(count / len(token) * log2(count / len(token)) for count in Counter(token).values()) >= 3.8


def _name_kind(character: str) -> str:
    if character.isdigit():
        return "digit"
    return "capital" if character.isupper() else "small"


@cache
def _open_detectors() -> tuple["RegexBasedDetector", ...]:
    # The import takes 0.2 s, so only a process that checks facts imports the package.
    return tuple(
        getattr(import_module(f"detect_secrets.plugins.{module}"), name)()
        for module, name in _DETECTORS.items()
    )
