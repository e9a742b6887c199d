"""Detection of the secrets that the policy rejects, in a text as written and with its disguises undone."""

from collections.abc import Iterator
from typing import Final

from mnemon_consumers.domain.policy.secrets.disguises import list_readings
from mnemon_consumers.domain.policy.secrets.kinds.access import says_access
from mnemon_consumers.domain.policy.secrets.kinds.accounts import contains_account
from mnemon_consumers.domain.policy.secrets.kinds.cards import contains_card
from mnemon_consumers.domain.policy.secrets.kinds.codes import says_code
from mnemon_consumers.domain.policy.secrets.kinds.documents import find_document
from mnemon_consumers.domain.policy.secrets.kinds.keys import find_key
from mnemon_consumers.domain.policy.secrets.kinds.passwords import says_password
from mnemon_consumers.domain.policy.secrets.kinds.security_questions import says_answer
from mnemon_consumers.domain.policy.secrets.kinds.seed_phrases import contains_seed_phrase
from mnemon_consumers.domain.policy.secrets.values import DIGIT
from mnemon_consumers.domain.policy.wording import join_lines
from mnemon_contracts.settings.groups import Policy

READABLE: Final = 10_000
"""Maximum number of characters of a text to examine; no policy allows a longer fact."""

FEWEST_DIGITS: Final = 4
"""Minimum number of digits of a text that is checked for document numbers."""

CARD_DIGITS: Final = 7
"""Minimum number of digits of a text that is checked for card numbers: a card's expiry date and code together
have as many."""

ACCOUNT_DIGITS: Final = 6
"""Minimum number of digits of a text that is checked for bank account numbers."""

PIECE: Final = 1_000
"""Maximum number of characters of a piece: longer texts are examined in pieces."""

OVERLAP: Final = 300
"""Number of characters that a piece to examine shares with the next piece, so that any statement up to this
length is whole in one of them."""


def find_secret(text: str, policy: Policy) -> str | None:
    """Return the kind of secret that a text holds, such as "a private key"; never the secret itself.

    Args:
        text: text on one line or several; its first 10,000 characters are examined.
        policy: the kinds of secrets to look for.

    Returns:
        None if the text holds no secret, or the policy does not reject secrets.
    """
    if not policy.refuse_secrets:
        return None
    for piece in _split_pieces(join_lines(text[:READABLE])):
        for reading in list_readings(piece):
            if (what := _find_in_piece(reading, policy)) is not None:
                return what
    return None


def _split_pieces(text: str) -> Iterator[str]:
    """Yield overlapping pieces of a text: the run time of some rules is quadratic in the length."""
    for start in range(0, max(len(text) - OVERLAP, 1), PIECE - OVERLAP):
        yield text[start : start + PIECE]


def _find_in_piece(text: str, policy: Policy) -> str | None:
    if (what := find_key(text)) is not None:
        return what
    if says_password(text):
        return "a password"
    if says_answer(text):
        return "the answer to a security question"
    if contains_seed_phrase(text):
        return "a seed phrase"
    digits = sum(map(str.isdigit, text)) if DIGIT.search(text) else 0
    if digits >= CARD_DIGITS and contains_card(text):
        return "a card number"
    if digits >= ACCOUNT_DIGITS and policy.refuse_bank_accounts and contains_account(text):
        return "a bank account's number"
    if digits >= FEWEST_DIGITS and policy.refuse_documents and (what := find_document(text)) is not None:
        return what
    if says_code(text):
        return "a PIN or another code"
    return "a password or a code" if says_access(text) else None
