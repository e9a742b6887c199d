"""The port of a folder's admin page."""

from pathlib import Path

import pytest

from mnemon.admin.page_port import PagePortTaken, listening_for
from mnemon.admin.session.tokens import token_of
from mnemon.http.socket_binding import listening_on, shown


def test_the_port_is_that_of_last_time_unless_somebody_has_it(tmp_path: Path) -> None:
    with listening_for(tmp_path, None) as first:
        address = shown(first)
        with listening_for(tmp_path, None) as meanwhile:
            assert shown(meanwhile) != address
        port = first.getsockname()[1]
        with pytest.raises(PagePortTaken, match=str(port)):
            listening_for(tmp_path, port)
    with listening_for(tmp_path, port) as chosen:
        assert shown(chosen) == address
    with listening_for(tmp_path, None) as again:
        assert shown(again) == address


def test_a_page_for_everybody_is_shown_by_an_address_that_works_here() -> None:
    with listening_on("0.0.0.0", 0) as listening:
        assert shown(listening).startswith("http://127.0.0.1:")


def test_the_token_is_made_once_and_nobody_else_can_read_it(tmp_path: Path) -> None:
    token = token_of(tmp_path)
    assert len(token) >= 43
    assert token_of(tmp_path) == token
    assert (tmp_path / "admin" / "token").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "admin").stat().st_mode & 0o777 == 0o700
