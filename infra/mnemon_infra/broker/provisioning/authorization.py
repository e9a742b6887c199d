"""Logins at NATS and their permissions: a file that the server's configuration includes.

Every tenant has an account of its own. Two kinds of messages pass from it to mnemon's account: the events
that a bot publishes and the requests that it sends, each with the tenant in the subject. Permissions within
one account would not suffice: the server sends the acknowledgement of a publish to any subject that the bot
names for the reply, so a bot could make the acknowledgement an event of another tenant.
"""

import json
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, Self
from urllib.parse import urlsplit, urlunsplit

from mnemon_contracts.streams import API_KEYS, DEAD, LOG, SETTINGS, WORK
from mnemon_contracts.subjects import (
    build_bot_filters,
    build_event_filter,
    build_inbox_prefix,
    decode_token,
    encode_ascii_name,
)

ACCOUNT: Final = "MNEMON"
"""The account that owns the streams."""

LoginRole = Literal["worker", "gateway", "operator"]

_HEAD = "accounts: "
_LIMITS: Final = "limits"

_WORKER: Final = {
    "publish": {
        "allow": [
            *("memory.>", "work.>", "schedule.>", "dead.>", "changed.>"),
            *("$JS.ACK.>", "_INBOX.>"),
            "_R_.>",  # replies across the border of an account
            *("$JS.API.INFO", "$JS.API.STREAM.INFO.*", "$JS.API.STREAM.LIST", "$JS.API.STREAM.MSG.GET.*"),
            *("$JS.API.DIRECT.GET.>", "$JS.API.CONSUMER.>"),
            # For erasures, and to create `WORK` and `DEAD` again after their deletion.
            *(f"$JS.API.STREAM.MSG.DELETE.{stream}" for stream in (LOG, DEAD)),
            f"$JS.API.STREAM.PURGE.{WORK}",
            *(f"$JS.API.STREAM.CREATE.{stream}" for stream in (WORK, DEAD)),
        ]
    },
    "subscribe": {"allow": ["ask.>", "memory.>", "changed.>", "_INBOX.>", "$SRV.>"]},
    "allow_responses": {"max": 1, "expires": "5m"},
}

_GATEWAY: Final = {
    "publish": {
        "allow": [
            *("chat.>", "ask.>"),
            build_event_filter("model.called"),  # the tokens of chats that the proxy passed on
            # For the keys of requests, and the prices of models.
            *(
                subject
                for bucket in (API_KEYS, SETTINGS)
                for subject in (
                    f"$JS.API.STREAM.INFO.KV_{bucket}",
                    f"$JS.API.DIRECT.GET.KV_{bucket}.>",
                    f"$JS.API.STREAM.MSG.GET.KV_{bucket}",
                )
            ),
            # For the changes of the log.
            *(f"$JS.API.CONSUMER.CREATE.{LOG}", f"$JS.API.CONSUMER.CREATE.{LOG}.>"),
            *(f"$JS.API.CONSUMER.MSG.NEXT.{LOG}.*", f"$JS.API.CONSUMER.DELETE.{LOG}.*"),
        ]
    },
    "subscribe": {"allow": ["_INBOX.>"]},
}

_PERMISSIONS: Final[Mapping[LoginRole, Mapping[str, Any]]] = {"worker": _WORKER, "gateway": _GATEWAY}
"""Permissions of the roles; an operator may do everything."""


class Login(NamedTuple):
    """Name and password with which a process logs in to NATS."""

    user: str
    password: str

    def add_to_url(self, url: str) -> str:
        """Return `url`, the address of a server, with the login in it."""
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit(parts._replace(netloc=f"{self.user}:{self.password}@{host}"))


class Limits(NamedTuple):
    """Limits that the server puts on a tenant; None takes the server's general limit.

    Attributes:
        payload: maximum bytes of a message. The server disconnects a client that sends more.
        connections: maximum number of connections at the same time. The server refuses further connections.
        subscriptions: maximum number of subscriptions of each connection.
    """

    payload: int | None = None
    connections: int | None = None
    subscriptions: int | None = None


class LoginPermissions(NamedTuple):
    """Permissions of one login.

    Attributes:
        user: name of the login.
        role: `bot` for the login of a tenant, else one of `LoginRole`.
        tenant: the tenant of the login; None for the login of a role.
        publish: patterns of the subjects to which the login may publish.
        subscribe: patterns of the subjects to which the login may subscribe.
        limits: the limits that are set, by the names of the attributes of `Limits`.
    """

    user: str
    role: str
    tenant: str | None
    publish: tuple[str, ...]
    subscribe: tuple[str, ...]
    limits: Mapping[str, int]


class Authorization:
    """The logins of a server.

    Only hashes of the passwords are kept. The password itself is only in the `Login` that the methods
    `issue_role_login` and `issue_tenant_login` return.
    """

    def __init__(self, accounts: dict[str, Any]) -> None:
        self._accounts = accounts

    @classmethod
    def from_file(cls, path: Path) -> Self:
        """Read a file of logins; if the file is absent, return an authorization without logins.

        The logins `worker` and `gateway` get the permissions of this version of mnemon.

        Raises:
            ForeignLoginFile: the file was not written by `mnemon auth`.
            OSError: the file exists, but cannot be read.
        """
        try:
            authorization = cls.from_text(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return cls({ACCOUNT: _build_main_account()})
        except ValueError as error:  # also a text that is not UTF-8
            raise ForeignLoginFile(
                f"{path} does not have the form that `mnemon auth` writes: restore the file, "
                "or move it to another folder"
            ) from error

        for user in authorization._main["users"]:
            if user["user"] in _PERMISSIONS:  # earlier versions gave workers more permissions
                user["permissions"] = _PERMISSIONS[user["user"]]
        return authorization

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Parse the text of a file of logins.

        Raises:
            ValueError: the text is not one that `to_text` returns.
        """
        try:
            accounts = json.loads(text[text.index(_HEAD) + len(_HEAD) :])
            has_users = all(isinstance(user["user"], str) for user in accounts[ACCOUNT]["users"])
        except (LookupError, TypeError, RecursionError):
            has_users = False
        if not has_users:
            raise ValueError(
                f"the text has no account {ACCOUNT}, or the account has no valid users: use a file that "
                "`mnemon auth` wrote"
            )
        return cls(accounts)

    def add_tenants(self, others: "Authorization") -> list[str]:
        """Add the logins of `others` for tenants that have none in this object, with passwords and limits.

        Returns:
            The names of the added logins.
        """
        added = [name for name in others._accounts if name != ACCOUNT and name not in self._accounts]
        self._accounts.update({name: others._accounts[name] for name in added})
        return added

    def to_text(self) -> str:
        """Return the text of the file that nats-server includes in its configuration."""
        # nats-server reads JSON strings, except for escapes of letters.
        return f"{_HEAD}{json.dumps(self._accounts, ensure_ascii=False, indent=2)}\n"

    def has_role_login(self, role: LoginRole) -> bool:
        """Return whether the role has a login."""
        return any(user["user"] == role for user in self._main["users"])

    def issue_role_login(self, role: LoginRole) -> Login:
        """Issue a login for a mnemon process or an operator, in place of the role's former login."""
        login = Login(role, secrets.token_urlsafe(24))
        user: dict[str, Any] = {"user": role, "password": _hash_password(login.password)}
        if role in _PERMISSIONS:
            user |= {"permissions": _PERMISSIONS[role]}
        users = self._main["users"]
        users[:] = [*(other for other in users if other["user"] != role), user]
        return login

    def issue_tenant_login(self, tenant: str) -> Login:
        """Issue a login for a tenant's bots, in place of their former login. The tenant's limits stay.

        Raises:
            mnemon_contracts.subjects.InvalidId: the id cannot be a tenant's.
        """
        login = Login(_name_login(tenant), secrets.token_urlsafe(24))
        filters = build_bot_filters(tenant)
        permissions = {
            "publish": {"allow": list(filters)},
            "subscribe": {"allow": [f"{build_inbox_prefix(tenant)}.>"]},
        }
        former = self._accounts.get(login.user, {})
        self._accounts[login.user] = {
            **({_LIMITS: former[_LIMITS]} if _LIMITS in former else {}),
            "users": [
                {"user": login.user, "password": _hash_password(login.password), "permissions": permissions}
            ],
            "imports": [{"service": {"account": ACCOUNT, "subject": each}} for each in filters],
        }
        return login

    def replace_tenant_limits(self, tenant: str, limits: Limits) -> bool:
        """Replace the limits of a tenant. Return False if the tenant has no login.

        Raises:
            mnemon_contracts.subjects.InvalidId: the id cannot be a tenant's.
        """
        account = self._accounts.get(_name_login(tenant))
        if account is None:
            return False
        account.pop(_LIMITS, None)
        if stated := {f"max_{name}": most for name, most in limits._asdict().items() if most is not None}:
            account[_LIMITS] = stated
        return True

    def revoke_tenant_login(self, tenant: str) -> bool:
        """Remove a tenant's login. Return False if the tenant has no login.

        Raises:
            mnemon_contracts.subjects.InvalidId: the id cannot be a tenant's.
        """
        return self._accounts.pop(_name_login(tenant), None) is not None

    def list_permissions(self) -> list[LoginPermissions]:
        """Return the permissions and the limits of every login."""
        found = []
        for account in self._accounts.values():
            for user in account["users"]:
                may = user.get("permissions", {})
                publish, subscribe = (
                    tuple(may.get(what, {}).get("allow", (">",))) for what in ("publish", "subscribe")
                )
                tenant = decode_token(publish[0].split(".")[1]) if "imports" in account else None
                role = "bot" if tenant is not None else user["user"]
                limits = {name.removeprefix("max_"): most for name, most in account.get(_LIMITS, {}).items()}
                found.append(LoginPermissions(user["user"], role, tenant, publish, subscribe, limits))
        return found

    @property
    def _main(self) -> dict[str, Any]:
        main: dict[str, Any] = self._accounts[ACCOUNT]
        return main


class ForeignLoginFile(Exception):
    """The file of logins was not written by `mnemon auth`."""


def build_open_configuration() -> str:
    """Return a server configuration that needs no login.

    Clients use the account that logins use, so that streams need not move when logins are added later.
    """
    accounts = {ACCOUNT: _build_main_account() | {"users": [{"user": "anybody"}]}}
    return f"{_HEAD}{json.dumps(accounts)}\nno_auth_user: anybody\n"


def quote_text(text: str) -> str:
    r"""Return a text as a JSON string whose letters are not escaped: nats-server cannot read `\u` escapes."""
    return json.dumps(text, ensure_ascii=False)


def _build_main_account() -> dict[str, Any]:
    return {
        "jetstream": "enabled",
        "users": [],
        # Open to every account: all accounts are in this file, and each imports its own subjects only.
        "exports": [{"service": "chat.>"}, {"service": "ask.>"}],
    }


def _name_login(tenant: str) -> str:
    return f"tenant-{encode_ascii_name(tenant)}"


def _hash_password(password: str) -> str:
    import bcrypt

    # The least number of rounds: 24 random bytes cannot be guessed, and each connection costs one check.
    return bcrypt.hashpw(password.encode(), bcrypt.gensalt(4)).decode()
