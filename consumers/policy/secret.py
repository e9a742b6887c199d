"""What looks like a secret: kept by nobody who is not asked to."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

from consumers.policy.wording import pattern

if TYPE_CHECKING:
    from detect_secrets.plugins.base import RegexBasedDetector

_RULES: Final = {
    "a private key": pattern(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY|PuTTY-User-Key-File"),
    "an API key": pattern(
        r"""(?<![\w-])(?:sk|rk|pk)[-_](?:(?=[\w-]*\d)[\w-]{8,}|[A-Za-z]{16,}|(?:live|test|ant|proj)[-_]\w{6,})|
        \bAIza[\w-]{30,}|\bhf_[A-Za-z0-9]{30,}"""
    ),
    "a bearer token": pattern(
        r"""\bbearer[\s:]+(?:(?=\S*\d)[\w.~+/=-]{8,}|[\w.~+/=-]{24,})|
        \bauthorization\s*[:=]\s*(?:bearer|basic|token)\s+\S{6,}"""
    ),
    "a JSON web token": re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}"),
    "an access token": pattern(
        r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_\w{20,}|xox[abeoprs]-[\w-]{10,})"
    ),
    "a key in hexadecimal digits": pattern(r"(?<![0-9A-Za-z])(?:0x)?[0-9a-f]{32,}(?![0-9A-Za-z])"),
    "a password": pattern(
        r"""(?:\b(?:password|passwd|passphrase|passcode|pwd)|\bпарол(?:ь|я|ю|ем|и))
        (?:\s+(?:from|for|to|of|on|от|для|к|на)\s[^:=\n]{1,40}?)?
        (?:\s*[:=]\s*[\"'«“]?\S{4,}|
        \s*(?:\bis\b|\bare\b|—|–|-|\bэто\b)\s*[\"'«“]?(?:(?=[^\s\"'»”]*\d)[^\s\"'»”]{4,}|
        (?!(?:\w+(?:ed|ing)|\w+н[оаы]|important|strong|weak|secret|wrong|safe|long|short|unknown|gone|correct|
        секрет\w*|верн\w+|длинн\w+|прост\w+|слож\w+)\b)\S{4,}$)|
        \s+(?=\S*\d)(?=\S*[a-zа-я])[\w!@#$%^&*]{6,}(?=[\s.,;]|$))"""
    ),
    "a key or a token": pattern(
        r"""(?:\b(?:api|access|secret|auth|private|client)[ _-]?(?:key|token|secret)|\btoken|\bтокен\w?|
        \b(?:секретн\w+|приватн\w+|api)[ -]ключ\w?|\bключ\w? (?:api|апи|доступа))
        \s*(?:[:=]|\bis\b|—|–|-|\bэто\b)?\s*[\"'«“]?
        (?=[^\s\"'»”]*\d)(?=[^\s\"'»”]*[a-z])[\w.~+/=-]{10,}"""
    ),
    "a PIN or a card's code": pattern(
        r"""(?:\bpin(?:[ -]?code)?|\bпин(?:[ -]?код)?\w?|\bcvv2?|\bcvc2?)
        (?:\s+(?:for|of|от|для|к|на)\s[^:=\n\d]{1,40}?)?
        \s*(?:[:=]|\bis\b|—|–|-|\bэто\b)?\s*\d{3,8}(?!\d)"""
    ),
}

_DETECTORS: Final = {
    "aws": "AWSKeyDetector",
    "azure_storage_key": "AzureStorageKeyDetector",
    "basic_auth": "BasicAuthDetector",
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
"""Those of detect-secrets that know a provider's format. Left out are those that guess from names in source
code (`secret: ...` is an honest sentence), public addresses, and Artifactory's, which takes APChemistry."""

_DIGITS: Final = re.compile(r"(?<![\w+.])\d+(?:[ -]\d+)*(?!\w)")
_CARD: Final = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2[2-7]\d{14}|220[0-4]\d{12,15}|3[47]\d{13}|3[0568]\d{12,17}"
    r"|6\d{15,18}|(?:50|5[6-9]|6\d)\d{11,17}"
)
"""Numbers as card issuers give them: others that pass the check digit by chance are orders and the like."""


def secret_in(text: str) -> str | None:
    """What a text seems to hold, such as "a private key"; None when it holds no secret. Never the secret."""
    for what, rule in _RULES.items():
        if rule.search(text):
            return what
    if any(_card_numbers(text)):
        return "a card number"
    for detector in _detectors():
        if any(detector.analyze_string(text)):
            return f"a secret ({detector.secret_type})"
    return None


@cache
def _detectors() -> tuple["RegexBasedDetector", ...]:
    # Importing them takes 0.2 s: only who checks facts waits for it.
    from importlib import import_module

    return tuple(
        getattr(import_module(f"detect_secrets.plugins.{module}"), name)()
        for module, name in _DETECTORS.items()
    )


def _card_numbers(text: str) -> Iterator[str]:
    """Numbers that a card could have: in one piece, or in groups of at least two digits."""
    for run in _DIGITS.finditer(text):
        groups = re.split("[ -]", run[0])
        for start in range(len(groups)):
            for end in range(start + 1, len(groups) + 1):
                number = "".join(groups[start:end])
                if len(number) > 19:
                    break
                if _CARD.fullmatch(number) and _passes_luhn(number):
                    yield number


def _passes_luhn(number: str) -> bool:
    return _luhn_sum(int(digit) for digit in reversed(number)) % 10 == 0


def _luhn_sum(digits: Iterable[int]) -> int:
    return sum(digit if place % 2 == 0 else sum(divmod(2 * digit, 10)) for place, digit in enumerate(digits))
