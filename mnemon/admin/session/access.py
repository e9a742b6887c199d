"""Access to the page by a token or by a link that logs in once, with a wait after failed attempts."""

import hashlib
import hmac
import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from itsdangerous import BadSignature, URLSafeTimedSerializer

from mnemon.admin.session.ended_sessions import EndedSessions
from mnemon.http.login_attempts import LoginAttempts

SESSION_SECONDS: Final = 12 * 3600
"""Lifetime of a session in seconds."""

_NOTICE_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class Session:
    """Session of a browser. `proof` is the CSRF token of its forms, which no other site can read."""

    id: str
    proof: str


class Access:
    """Access of browsers to the page: begins, checks and ends sessions.

    Args:
        token: the token of the login, which also signs sessions: a new token ends all sessions.
        links: keys of links that log in once.
        used: function that is called with each used key.
        ended: sessions that were ended before they expired.
    """

    def __init__(
        self,
        token: str,
        links: Iterable[str] = (),
        used: Callable[[str], None] = lambda _: None,
        ended: EndedSessions | None = None,
    ) -> None:
        self._token = token.encode()
        self._links = set(links)
        self._used = used
        self._ended = ended or EndedSessions()
        self._attempts = LoginAttempts()
        self._sessions = self._create_signer("session")
        self._notices = self._create_signer("notice")
        # Derive the name from the token: a browser sends cookies to every port of a host.
        self.cookie = f"mnemon-{self._sign_text('cookie')[:12]}"

    def get_wait(self, address: str) -> float:
        """Return the seconds until an address may try again; 0 if it may try now."""
        return self._attempts.get_wait(address)

    def log_in(self, token: str, address: str) -> str | None:
        """Return the cookie of a new session; None if `token` is wrong, which counts against `address`."""
        if not hmac.compare_digest(token.strip().encode(), self._token):
            self._attempts.record_failure(address)
            return None
        self._attempts.record_success(address)
        return self._create_cookie()

    def log_in_by_link(self, key: str) -> str | None:
        """Use up a link and return the cookie of a new session; None if no unused link has this key."""
        for known in self._links:
            if hmac.compare_digest(key.encode(), known.encode()):
                self._links.discard(known)
                self._used(known)
                return self._create_cookie()
        return None

    def get_session(self, cookie: str | None) -> Session | None:
        """Return the session of a cookie; None if the cookie is invalid or the session is over."""
        try:
            id_ = str(self._sessions.loads(cookie or "", max_age=SESSION_SECONDS))
        except BadSignature:
            return None
        return None if id_ in self._ended else Session(id_, self._sign_text(f"form {id_}"))

    def end_session(self, session: Session) -> None:
        """End a session.

        Raises:
            OSError: the end could not be recorded; after a restart, the session is valid again.
        """
        self._ended.add(session.id, time.time() + SESSION_SECONDS)

    def sign_notice(self, notice: str) -> str:
        """Sign a notice for the next page, as the value of a cookie."""
        return str(self._notices.dumps(notice))

    def read_notice(self, cookie: str | None) -> str | None:
        """Return the notice of a cookie from `sign_notice`; None if the cookie is invalid or too old."""
        try:
            return str(self._notices.loads(cookie or "", max_age=_NOTICE_SECONDS))
        except BadSignature:
            return None

    def _create_cookie(self) -> str:
        return str(self._sessions.dumps(os.urandom(16).hex()))

    def _sign_text(self, text: str) -> str:
        return hmac.new(self._token, text.encode(), hashlib.sha256).hexdigest()

    def _create_signer(self, purpose: str) -> URLSafeTimedSerializer:
        how = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
        return URLSafeTimedSerializer(self._token, salt=purpose, signer_kwargs=how)
