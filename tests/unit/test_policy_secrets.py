"""Which facts are refused because they hold a secret."""

import pytest

from consumers.policy.refusing import refusal
from contracts.memory import Reason
from contracts.settings import Policy

SECRETS = (
    "My key is sk-1234567890abcdef",
    "sk-proj-abcdefABCDEF123456",
    "Key sk-abcdefghijklmnopqrst",
    "Authorization: Bearer abcdefghijkl",
    "Use Bearer abc123def456 for requests",
    "hash d41d8cd98f00b204e9800998ecf8427e here",
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
    'curl -H "Authorization: Bearer abc.def.ghi123" https://x.y',
)


def reason(text: str) -> Reason | None:
    refused = refusal(text, Policy())
    return refused[0] if refused else None


@pytest.mark.parametrize("text", SECRETS)
def test_secrets_are_refused_and_not_repeated(text: str) -> None:
    refused = refusal(text, Policy())
    assert refused is not None
    assert refused[0] == "secret"
    secrets = [word for word in text.split() if any(sign.isdigit() for sign in word) and len(word) > 3]
    assert not any(word in refused[1] for word in secrets)


def test_a_secret_in_a_command_or_a_question_is_a_secret() -> None:
    assert reason("export KEY=sk-1234567890abcdef") == "secret"
    assert reason("Is sk-1234567890abcdef my key?") == "secret"


@pytest.mark.parametrize(
    "number",
    ["4111 1111 1111 1112", "1234567890123", "4111-1111-1111-111", "0000 0000 0000 0000", "9111111111111111"],
)
def test_numbers_that_no_card_has_are_kept(number: str) -> None:
    assert reason(f"User's number is {number} there") is None
