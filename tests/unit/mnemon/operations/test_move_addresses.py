"""Addresses of deployments that a move stores and sends to bots."""

import pytest

from mnemon.operations.tenant_move.deployment import strip_login


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("nats://b:4222", "nats://b:4222"),
        ("nats://operator:secret@b:4222", "nats://b:4222"),
        ("operator:secret@b:4222", "b:4222"),
        ("nats://operator:secret@a:4222, operator:secret@b:4222", "nats://a:4222,b:4222"),
        ("TLS://operator:secret@b:4222", "TLS://b:4222"),
        ("tls://token@[::1]:4222,", "tls://[::1]:4222"),
        ("nats://operator:sec@ret/x@b:4222", "nats://b:4222"),
    ],
)
def test_address_has_no_login(url: str, address: str) -> None:
    assert strip_login(url) == address
