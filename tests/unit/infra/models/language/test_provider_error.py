"""Parts of a provider's error that mnemon shows, and parts that it leaves out."""

import pytest

from mnemon_infra.models.language.provider_error import ProviderError, remove_content

INSTRUCTIONS = "Write down the facts of the messages."
TEXT = "[1] user: My password is hunter2, I am not well and live in Porto, Straße 7. Я люблю чай"


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model.",
            "Unsupported parameter: 'max_tokens' is not supported with this model.",
        ),
        ("maximum context length is 8192 tokens", "maximum context length is 8192 tokens"),
        ("Invalid content: hunter2", "Invalid content: ..."),
        ("Invalid prompt: 'My password is hunter2'", "Invalid prompt: '...'"),
        ("Invalid: i am NOT well", "Invalid: ..."),
        ("Invalid: hunt", "Invalid: ..."),
        ("Invalid: STRASSE", "Invalid: ..."),
        ("Invalid: люблю", "Invalid: ..."),
        ("Invalid: кофе", "Invalid: ..."),
        (r"Invalid: \u043b\u044e\u0431", "Invalid: ..."),
        ("Invalid: %D1%8F", "Invalid: ..."),
        ("Invalid key sk-abc-def and AIzaSyA and abc*****xyz", "Invalid key ... and ... and ..."),
        ("Invalid: " + "QUJD" * 20, "Invalid: ..."),
        ("Invalid: “what” — chars", "Invalid: ?what? ? chars"),
        ("Write down the facts", "Write down the facts"),
    ],
)
def test_error_message_repeats_no_request_text(message: str, shown: str) -> None:
    assert remove_content(message, INSTRUCTIONS, TEXT) == shown


def test_error_message_is_bounded() -> None:
    assert len(remove_content("too long " * 100_000, INSTRUCTIONS, TEXT)) == 300


@pytest.mark.parametrize(
    ("body", "described"),
    [
        (
            {"error": {"code": "invalid_prompt", "param": "messages", "message": "too long: hunter2"}},
            "code invalid_prompt, param messages: too long: ...",
        ),
        ({"message": "too long", "type": "invalid_request_error"}, "code invalid_request_error: too long"),
        ({"error": {"code": "my password", "param": ["a"], "message": 7}}, ""),
        ({"error": "too long"}, "too long"),
        ({"detail": "too long"}, "too long"),
        (None, ""),
        ([], ""),
    ],
)
def test_description_has_the_code_parameter_and_message_that_exist(body: object, described: str) -> None:
    assert ProviderError.from_body(body).describe(INSTRUCTIONS, TEXT) == described
