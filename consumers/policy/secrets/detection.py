"""Decision whether a text holds a secret, over all sorts of secrets and all readings of the text."""

from consumers.policy.secrets.accounts import account_in
from consumers.policy.secrets.cards import card_in
from consumers.policy.secrets.codes import says_code
from consumers.policy.secrets.disguises import readings
from consumers.policy.secrets.documents import document_in
from consumers.policy.secrets.keys import key_in
from consumers.policy.secrets.passwords import says_password
from consumers.policy.secrets.seed_phrases import seed_phrase_in
from consumers.policy.wording import one_line
from contracts.settings import Policy


def secret_in(text: str, policy: Policy) -> str | None:
    """Name the sort of secret that a text holds, such as "a private key"; never the secret itself.

    Args:
        text: on one line or several; its first 10,000 characters are examined.
        policy: says which sorts are looked for.

    Returns:
        None when the text holds no secret, or the policy refuses none.
    """
    if not policy.refuse_secrets:
        return None
    for reading in readings(one_line(text)):
        if (what := _secret_in(reading, policy)) is not None:
            return what
    return None


def _secret_in(text: str, policy: Policy) -> str | None:
    if (what := key_in(text)) is not None:
        return what
    if says_password(text):
        return "a password"
    if seed_phrase_in(text):
        return "a seed phrase"
    if not any(map(str.isdigit, text)):
        return "a PIN or a one-time code" if says_code(text) else None
    if card_in(text):
        return "a card number"
    if policy.refuse_bank_accounts and account_in(text):
        return "a bank account's number"
    if policy.refuse_documents and (what := document_in(text)) is not None:
        return what
    return "a PIN or a one-time code" if says_code(text) else None
