"""Logins in the file of a NATS server: one password for each login, and limits that can be removed."""

import json
from pathlib import Path
from typing import Any

import bcrypt
import pytest

from mnemon_infra.broker.provisioning.authorization import (
    ACCOUNT,
    Authorization,
    ForeignLoginFile,
    Limits,
    Login,
    LoginRole,
)
from mnemon_infra.process.data_folder import replace_file


def empty(path: Path) -> Authorization:
    """Return the authorization for a file that does not exist yet."""
    return Authorization.from_file(path / "nats.conf")


def accounts_of(authorization: Authorization) -> dict[str, Any]:
    """Return the accounts that the server reads from the text of an authorization."""
    accounts: dict[str, Any] = json.loads(authorization.to_text().partition(": ")[2])
    return accounts


def admits(authorization: Authorization, login: Login) -> bool:
    """Return whether the server accepts the user and password of a login."""
    return any(
        user["user"] == login.user and bcrypt.checkpw(login.password.encode(), user["password"].encode())
        for account in accounts_of(authorization).values()
        for user in account["users"]
    )


@pytest.mark.parametrize("role", ["worker", "operator"])
def test_last_login_of_a_role_counts(tmp_path: Path, role: LoginRole) -> None:
    users = empty(tmp_path)
    other = users.issue_role_login("operator" if role == "worker" else "worker")
    former = [users.issue_role_login(role) for _ in range(2)]
    last = users.issue_role_login(role)
    assert [admits(users, login) for login in (*former, last, other)] == [False, False, True, True]
    names = [user["user"] for user in accounts_of(users)[ACCOUNT]["users"]]
    assert sorted(names) == ["operator", "worker"]


def test_last_login_of_a_tenant_counts(tmp_path: Path) -> None:
    users = empty(tmp_path)
    other = users.issue_tenant_login("B")
    former = [users.issue_tenant_login("A") for _ in range(2)]
    last = users.issue_tenant_login("A")
    assert [admits(users, login) for login in (*former, last, other)] == [False, False, True, True]
    assert [each.tenant for each in users.list_permissions()] == ["B", "A"]


def test_revoked_login_is_removed_and_others_stay(tmp_path: Path) -> None:
    users = empty(tmp_path)
    logins = [users.issue_tenant_login(tenant) for tenant in "ABC"]
    assert users.revoke_tenant_login("B")
    assert [admits(users, login) for login in logins] == [True, False, True]
    assert not users.revoke_tenant_login("B")


def test_issued_login_exists(tmp_path: Path) -> None:
    users = empty(tmp_path)
    users.issue_role_login("worker")
    assert users.has_role_login("worker")
    assert not users.has_role_login("operator")


def test_limits_can_be_removed(tmp_path: Path) -> None:
    users = empty(tmp_path)
    for tenant in "AB":
        users.issue_tenant_login(tenant)
        users.replace_tenant_limits(tenant, Limits(payload=4096, connections=1))
    assert users.replace_tenant_limits("A", Limits())
    assert {each.tenant: each.limits for each in users.list_permissions()} == {
        "A": {},
        "B": {"payload": 4096, "connections": 1},
    }
    users.issue_tenant_login("A")
    assert users.list_permissions()[0].limits == {}


def test_zero_is_a_limit(tmp_path: Path) -> None:
    users = empty(tmp_path)
    users.issue_tenant_login("A")
    assert users.replace_tenant_limits("A", Limits(connections=0))
    assert users.list_permissions()[0].limits == {"connections": 0}


def test_logins_file_round_trips(tmp_path: Path) -> None:
    users = empty(tmp_path)
    login = users.issue_role_login("worker")
    bot = users.issue_tenant_login("ä.b c")
    users.replace_tenant_limits("ä.b c", Limits(subscriptions=10))
    replace_file(tmp_path / "nats.conf", users.to_text())
    again = empty(tmp_path)
    assert again.list_permissions() == users.list_permissions()
    assert [admits(again, each) for each in (login, bot)] == [True, True]


@pytest.mark.parametrize(
    "accounts",
    [
        "{A: {}}",
        "{}",
        "[]",
        '{"MNEMON": {}}',
        '{"MNEMON": {"users": null}}',
        '{"MNEMON": {"users": [{"nkey": "U"}]}}',
        "[" * 100_000,
    ],
    ids=["no JSON", "no accounts", "a list", "no users", "null", "no name", "nested deeply"],
)
def test_foreign_logins_file_is_refused(tmp_path: Path, accounts: str) -> None:
    (tmp_path / "nats.conf").write_text(f"accounts: {accounts}")
    with pytest.raises(ForeignLoginFile, match="restore the file, or move it to another folder"):
        empty(tmp_path)


def test_logins_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "nats.conf").write_text("accounts: {}", encoding="utf-16")
    with pytest.raises(ForeignLoginFile, match="restore the file"):
        empty(tmp_path)
