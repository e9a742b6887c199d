"""Invalid variables for the login are refused, not ignored."""

from pathlib import Path

import pytest

from mnemon_contracts.login import CERTIFICATE, CERTIFICATE_KEY, LoginUnusable, read_login_options


def test_key_without_its_certificate_is_refused(tmp_path: Path) -> None:
    key = tmp_path / "key.pem"
    key.write_text("")
    with pytest.raises(LoginUnusable, match=f"{CERTIFICATE_KEY} .*set {CERTIFICATE} "):
        read_login_options("nats://127.0.0.1:4222", {CERTIFICATE_KEY: str(key), CERTIFICATE: ""})
