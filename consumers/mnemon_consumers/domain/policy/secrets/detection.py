"""Detection of secrets in a text, over all sorts of secrets and all readings of the text."""

from collections.abc import Iterator
from typing import Final

from mnemon_consumers.domain.policy.secrets.disguises import readings
from mnemon_consumers.domain.policy.secrets.kinds.access import says_access
from mnemon_consumers.domain.policy.secrets.kinds.accounts import account_in
from mnemon_consumers.domain.policy.secrets.kinds.cards import card_in
from mnemon_consumers.domain.policy.secrets.kinds.codes import says_code
from mnemon_consumers.domain.policy.secrets.kinds.documents import document_in
from mnemon_consumers.domain.policy.secrets.kinds.keys import key_in
from mnemon_consumers.domain.policy.secrets.kinds.passwords import says_password
from mnemon_consumers.domain.policy.secrets.kinds.security_questions import says_answer
from mnemon_consumers.domain.policy.secrets.kinds.seed_phrases import seed_phrase_in
from mnemon_consumers.domain.policy.secrets.values import DIGIT
from mnemon_consumers.domain.policy.wording import one_line
from mnemon_contracts.settings.groups import Policy

READABLE: Final = 10_000
"""Characters of a text to examine; a fact has far fewer."""

FEWEST_DIGITS: Final = 4
"""Fewest digits of a text that is checked for documents."""

CARD_DIGITS: Final = 7
ACCOUNT_DIGITS: Final = 6
"""Fewest digits of a card's expiry date with its code, and of a bank account's number."""

PIECE: Final = 1_000
OVERLAP: Final = 300
"""Characters that a piece to examine shares with the next; no secret is longer."""


def secret_in(text: str, policy: Policy) -> str | None:
    """Return the sort of secret that a text holds, such as "a private key"; never the secret itself.

    Args:
        text: text on one line or several; its first 10,000 characters are examined.
        policy: tells which sorts to look for.

    Returns:
        None if the text holds no secret, or the policy refuses none.
    """
    if not policy.refuse_secrets:
        return None
    for piece in _pieces(one_line(text[:READABLE])):
        for reading in readings(piece):
            if (what := _secret_in(reading, policy)) is not None:
                return what
    return None


def _pieces(text: str) -> Iterator[str]:
    """Yield overlapping pieces of a text, because some rules take time by the square of the length."""
    for start in range(0, max(len(text) - OVERLAP, 1), PIECE - OVERLAP):
        yield text[start : start + PIECE]


def _secret_in(text: str, policy: Policy) -> str | None:
    if (what := key_in(text)) is not None:
        return what
    if says_password(text):
        return "a password"
    if says_answer(text):
        return "the answer to a security question"
    if seed_phrase_in(text):
        return "a seed phrase"
    digits = sum(map(str.isdigit, text)) if DIGIT.search(text) else 0
    if digits >= CARD_DIGITS and card_in(text):
        return "a card number"
    if digits >= ACCOUNT_DIGITS and policy.refuse_bank_accounts and account_in(text):
        return "a bank account's number"
    if digits >= FEWEST_DIGITS and policy.refuse_documents and (what := document_in(text)) is not None:
        return what
    if says_code(text):
        return "a PIN or a one-time code"
    return "a password or a code" if says_access(text) else None
