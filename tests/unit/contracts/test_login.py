"""Invalid variables for the login are refused, not ignored, and no message has a login."""

from pathlib import Path

import pytest

from mnemon_contracts.login import (
    CERTIFICATE,
    CERTIFICATE_KEY,
    CREDENTIALS,
    LoginUnusable,
    read_login_options,
    redact_address,
)


def test_key_without_its_certificate_is_refused(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text("")
    with pytest.raises(LoginUnusable, match=f"{CERTIFICATE_KEY} .*set {CERTIFICATE} "):
        read_login_options("nats://127.0.0.1:4222", {CERTIFICATE_KEY: str(key), CERTIFICATE: ""})


@pytest.mark.parametrize("url", ["nats://bot:se/cret@a:1", "bot:secret@a:1", "nats://a:1,bot:secret@b:2"])
def test_login_in_the_address_takes_precedence(url: str, tmp_path: Path) -> None:
    missing = {CREDENTIALS: str(tmp_path / "absent")}
    assert read_login_options(url, missing) == {}
    with pytest.raises(LoginUnusable, match=f"{CREDENTIALS}: .*absent cannot be read"):
        read_login_options("nats://a:1", missing)


@pytest.mark.parametrize(
    ("url", "seen"),
    [
        ("nats://nats:4222", "nats://nats:4222"),
        ("nats://bot:secret@nats:4222", "nats://***@nats:4222"),
        ("nats://token@a:1, tls://bot:p@ss@b:2", "nats://***@a:1, tls://***@b:2"),
        ("nats://bot:se/cret@a:1", "nats://***@a:1"),
        ("nats://a:1,bot:secret@b:2", "nats://***@b:2"),
        ("nats://bot:se,cret@a:1,nats://b:2", "nats://***@a:1,nats://b:2"),
    ],
)
def test_no_credentials_are_shown(url: str, seen: str) -> None:
    assert redact_address(url) == seen
