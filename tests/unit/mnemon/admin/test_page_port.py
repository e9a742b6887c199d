"""The port of a folder's admin page."""

from pathlib import Path

import pytest

from mnemon.admin.launcher import open_page_socket
from mnemon.admin.session.tokens import load_token
from mnemon.http.saved_port import PortTaken
from mnemon.http.server import format_address, open_listening_socket


def test_page_reuses_its_port_unless_taken(tmp_path: Path) -> None:
    with open_page_socket(tmp_path, None) as first:
        address = format_address(first)
        with open_page_socket(tmp_path, None) as meanwhile:
            assert format_address(meanwhile) != address
        port = first.getsockname()[1]
        with pytest.raises(PortTaken, match=str(port)):
            open_page_socket(tmp_path, port)
    with open_page_socket(tmp_path, port) as chosen:
        assert format_address(chosen) == address
    with open_page_socket(tmp_path, None) as again:
        assert format_address(again) == address


def test_public_page_is_shown_with_a_local_address() -> None:
    with open_listening_socket("0.0.0.0", 0) as listening:
        assert format_address(listening).startswith("http://127.0.0.1:")


def test_token_is_created_once_and_private(tmp_path: Path) -> None:
    token = load_token(tmp_path)
    assert len(token) >= 43
    assert load_token(tmp_path) == token
    assert (tmp_path / "admin" / "token").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "admin").stat().st_mode & 0o777 == 0o700
