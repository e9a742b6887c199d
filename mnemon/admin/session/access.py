"""Who may look: who has the token, or a link that logs in once; attempts are slowed down."""

import hashlib
import hmac
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from itsdangerous import BadSignature, URLSafeTimedSerializer

from mnemon.admin.session.revoked import SESSION_SECONDS, EndedSessions
from mnemon.http.login_attempts import Attempts

_NOTICE_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class Session:
    """A browser that has logged in. `proof` is in each of its forms, where no other site can read it."""

    id: str
    proof: str


class Access:
    """Lets in who has the token or an unused link.

    Args:
        token: what is asked for, and what sessions are signed with: a new one ends them all.
        links: keys of links that log in once.
        used: told of each of them that was used.
        ended: sessions that were ended.
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
        self._attempts = Attempts()
        self._sessions = self._signer("session")
        self._notices = self._signer("notice")
        # By the token, since a browser gives cookies to every port of a host.
        self.cookie = f"mnemon-{self._sign('cookie')[:12]}"

    def wait(self, address: str) -> float:
        """Seconds until who is there may try again."""
        return self._attempts.wait(address)

    def enter(self, said: str, address: str) -> str | None:
        """The cookie of a new session, if that is the token."""
        if not hmac.compare_digest(said.strip().encode(), self._token):
            self._attempts.fail(address)
            return None
        self._attempts.succeed(address)
        return self._begin()

    def enter_by_link(self, key: str) -> str | None:
        """The cookie of a new session, if that is the key of a link that nobody has used."""
        for known in self._links:
            if hmac.compare_digest(key.encode(), known.encode()):
                self._links.discard(known)
                self._used(known)
                return self._begin()
        return None

    def session(self, cookie: str | None) -> Session | None:
        """Whose cookie it is; None when nobody's, or of a session that is over."""
        try:
            id_ = str(self._sessions.loads(cookie or "", max_age=SESSION_SECONDS))
        except BadSignature:
            return None
        return None if id_ in self._ended else Session(id_, self._sign(f"form {id_}"))

    def leave(self, session: Session) -> None:
        """End a session.

        Raises:
            OSError: a process that begins anew will not know of it.
        """
        self._ended.add(session.id)

    def seal(self, notice: str) -> str:
        """What is to be shown on the next page, for a cookie."""
        return str(self._notices.dumps(notice))

    def unseal(self, cookie: str | None) -> str | None:
        """What `seal` was given."""
        try:
            return str(self._notices.loads(cookie or "", max_age=_NOTICE_SECONDS))
        except BadSignature:
            return None

    def _begin(self) -> str:
        return str(self._sessions.dumps(os.urandom(16).hex()))

    def _sign(self, text: str) -> str:
        return hmac.new(self._token, text.encode(), hashlib.sha256).hexdigest()

    def _signer(self, purpose: str) -> URLSafeTimedSerializer:
        how = {"key_derivation": "hmac", "digest_method": hashlib.sha256}
        return URLSafeTimedSerializer(self._token, salt=purpose, signer_kwargs=how)
