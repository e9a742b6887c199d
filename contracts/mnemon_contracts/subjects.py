"""The grammar of subjects, and the functions that build and parse them.

    chat.<tenant>.<user>.<conversation>.<event>.v<N>    event of a bot
    memory.<tenant>.<user>.<thing>.<event>.v<N>         derived event, or decision
    ask.<tenant>.<user>.<verb>.v<N>                     request/reply
    work.<consumer>.<tenant>.<user>[.<conversation>]    trigger
    work.<consumer>.<log position>                      trigger: users with new messages up to this position
    work.batches.<tenant>.<user>.<conversation>.<log position>    trigger: a window from this position on
    work.maintain.<task>, work.batches.tick             trigger that a schedule publishes
    schedule.<kind>[.<tenant>.<user>]                   a server-side schedule
    dead.<consumer>.<original subject>                  dead letter
    changed.<tenant>.<user>                             notice after a commit

Characters of an id that NATS does not accept in a token are percent-encoded (UTF-8, upper-case hex, as in
RFC 3986). Every id has exactly one spelling. A token with another spelling is refused, so that permissions,
purges and caches, which match subjects, never miss a user.

Functions that build subjects and filters from ids raise `InvalidId` as `encode_token` does.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple
from urllib.parse import unquote_to_bytes

from mnemon_contracts.base import ID_LIMIT

Owner = tuple[str, str]
"""Tenant and user."""

CURRENT = "-"
"""Token of the user's current conversation, which depends on the log position."""

Space = Literal["chat", "memory", "ask"]

# NATS splits on ".", matches "*" and ">", and ends a token at white space; "%" starts our own escapes.
# White space is listed, because "\s" differs between languages and Unicode versions.
_UNSAFE = re.compile(r"[.*>%\x01-\x20\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
_UNFIT_FOR_SUBJECT = re.compile(r"[*>\x00-\x20\x7f]")
_SHOWN = 300
"""Number of characters to which errors shorten an unknown subject, or a token that cannot be decoded."""

_VERSION = re.compile(r"v([1-9][0-9]{0,5})\Z")
_PLAIN = re.compile(r"[A-Za-z0-9_-]+\Z")
_NAME = re.compile(r"[a-z][a-z_]*\Z")


class InvalidId(ValueError):
    """An id that cannot be stored: empty, too long, with U+0000, or not valid Unicode."""


class InvalidSubject(ValueError):
    """A subject that does not follow the grammar; the message names the invalid part."""


@dataclass(frozen=True, slots=True)
class Address:
    """A parsed subject. `name` is the name of the event or verb: `message`, `fact.saved` or `history`.

    `conversation` is None for the current conversation, and in the spaces `memory` and `ask`.
    """

    space: Space
    tenant: str
    user: str
    conversation: str | None
    name: str
    version: int

    @property
    def owner(self) -> Owner:
        """The tenant and the user."""
        return self.tenant, self.user


class SubjectOrigin(NamedTuple):
    """Owner and conversation that a `chat` or `memory` subject names, even if the subject is invalid.

    The ids may be spelled in another way than `encode_token` spells them.

    `conversation` is None for the current conversation or a subject without a conversation; it is "" if the
    token of the conversation is not an id.
    """

    space: Literal["chat", "memory"]
    owner: Owner
    conversation: str | None


@lru_cache(maxsize=65_536)
def encode_token(identifier: str) -> str:
    """Encode an id as one NATS token; `decode_token` is the inverse.

    Raises:
        InvalidId: the id is empty, longer than `ID_LIMIT` bytes, or contains U+0000 or a lone surrogate.
    """
    if not identifier:
        raise InvalidId(f"an id must not be empty; use an id of 1 to {ID_LIMIT} bytes")
    if "\0" in identifier:
        raise InvalidId("the id contains U+0000, which PostgreSQL cannot store; remove the character")
    try:
        size = len(identifier.encode())
    except UnicodeEncodeError as error:
        raise InvalidId(
            "the id contains a lone surrogate, which is not valid Unicode; remove the character"
        ) from error
    if size > ID_LIMIT:
        raise InvalidId(f"the id has {size} bytes, and the limit is {ID_LIMIT}; use a shorter id")
    if identifier == CURRENT:
        return "%2D"  # a bare "-" means the current conversation
    return _UNSAFE.sub(_percent_encode, identifier)


def decode_token(token: str) -> str:
    """Return the id that `encode_token` encodes as this token.

    Raises:
        InvalidSubject: the token is not the canonical spelling of an id.
    """
    try:
        identifier = unquote_to_bytes(token).decode()
        expected = encode_token(identifier)
    except (UnicodeError, InvalidId) as error:
        raise InvalidSubject(
            f"token {token!r:.{_SHOWN}} is not an id as `encode_token` encodes it: {error}"
        ) from error
    if expected != token:
        raise InvalidSubject(f"token {token!r} must be spelled {expected!r}")
    return identifier


def build_chat_subject(tenant: str, user: str, conversation: str | None, event: str, version: int = 1) -> str:
    """Return the subject of a bot's event; `conversation=None` is the user's current conversation."""
    place = CURRENT if conversation is None else encode_token(conversation)
    return f"chat.{encode_token(tenant)}.{encode_token(user)}.{place}.{event}.v{version}"


def build_memory_subject(tenant: str, user: str, event: str, version: int = 1) -> str:
    """Return the subject of a derived event; `event` is `<thing>.<event>`, such as `profile.set`."""
    return f"memory.{encode_token(tenant)}.{encode_token(user)}.{event}.v{version}"


def build_ask_subject(tenant: str, user: str, verb: str, version: int = 1) -> str:
    """Return the subject of a request."""
    return f"ask.{encode_token(tenant)}.{encode_token(user)}.{verb}.v{version}"


def build_ask_pattern(verb: str, version: int = 1) -> str:
    """Return the pattern of a verb's requests of all tenants and users."""
    return f"ask.*.*.{verb}.v{version}"


def build_trigger_subject(consumer: str, tenant: str, user: str, conversation: str | None = None) -> str:
    """Return the subject of a trigger for a user or a conversation."""
    place = "" if conversation is None else f".{encode_token(conversation)}"
    return f"work.{consumer}.{encode_token(tenant)}.{encode_token(user)}{place}"


def build_message_trigger_subject(consumer: str, seq: int) -> str:
    """Return the subject of a trigger that names users with new messages up to the log position `seq`."""
    return f"work.{consumer}.{seq}"


def parse_message_trigger(subject: str) -> int:
    """Return the log position in a subject of `build_message_trigger_subject`.

    Raises:
        InvalidSubject: the subject names no log position.
    """
    match subject.split("."):
        case ["work", _, position] if position.isascii() and position.isdecimal():
            return int(position)
    raise InvalidSubject(f"subject {subject!r}: expected work.<consumer>.<log position>")


def build_schedule_subject(kind: str, tenant: str, user: str) -> str:
    """Return the subject of a user's schedule; a newer schedule on this subject replaces the older one."""
    return f"schedule.{kind}.{encode_token(tenant)}.{encode_token(user)}"


def build_dead_letter_subject(consumer: str, original: str) -> str:
    """Return the subject of the dead letter of a message that came on `original`.

    `*`, `>`, spaces and control characters of `original` are percent-encoded.
    """
    return f"dead.{consumer}.{_UNFIT_FOR_SUBJECT.sub(_percent_encode, original)}"


def build_dead_letter_filter(consumer: str, original: str = ">") -> str:
    """Return the filter of a consumer's dead letters; `original` filters by the subject of the message."""
    return f"dead.{consumer}.{original}"


def build_notice_subject(tenant: str, user: str) -> str:
    """Return the subject of the notice that a user's stored memory has changed."""
    return f"changed.{encode_token(tenant)}.{encode_token(user)}"


def build_user_filters(tenant: str, user: str) -> tuple[str, str]:
    """Return the two filters that together match all of a user's events in the log."""
    owner = f"{encode_token(tenant)}.{encode_token(user)}"
    return f"chat.{owner}.>", f"memory.{owner}.>"


def build_user_letter_filters(tenant: str, user: str) -> tuple[str, ...]:
    """Return the filters that together match the dead letters of a user.

    They do not match a dead letter whose subject spells an id in another way than `encode_token`, such as
    `%61` for `a`. If the letter is that of an event, `find_letter_origin` finds its user all the same.
    """
    owner = f"{encode_token(tenant)}.{encode_token(user)}"
    events = (f"dead.*.{space}.{owner}.>" for space in ("chat", "memory"))
    return (*events, f"dead.*.work.*.{owner}", f"dead.*.work.*.{owner}.>")


def build_user_trigger_filters(tenant: str, user: str) -> tuple[str, ...]:
    """Return the filters of a user's triggers, except those that start a sweep."""
    owner = f"{encode_token(tenant)}.{encode_token(user)}"
    return (
        f"work.extract.{owner}",
        f"work.dedupe.{owner}",
        f"work.*.{owner}.>",
    )


def build_conversation_filter(tenant: str, user: str, conversation: str | None) -> str:
    """Return the filter of the chat events whose subjects name a conversation.

    For None, the filter matches all events on `-`, whichever conversation was the current one then.
    """
    return build_chat_subject(tenant, user, conversation, "message").replace(".message.v1", ".>")


def build_conversation_trigger_filters(tenant: str, user: str, conversation: str) -> tuple[str, str]:
    """Return the two filters that together match the triggers of a conversation and of its windows."""
    place = f"work.*.{encode_token(tenant)}.{encode_token(user)}.{encode_token(conversation)}"
    return place, f"{place}.*"


def build_bot_filters(tenant: str) -> tuple[str, str]:
    """Return the two filters that together match all events and requests that a tenant's bots may send."""
    token = encode_token(tenant)
    return f"chat.{token}.>", f"ask.{token}.>"


def build_tenant_filters(tenant: str) -> tuple[str, str]:
    """Return the two filters that together match all of a tenant's events in the log."""
    token = encode_token(tenant)
    return f"chat.{token}.>", f"memory.{token}.>"


def build_owner_filter(tenant: str, user: str | None = None) -> str:
    """Return the filter of all events of a tenant in the log, or of one user's events.

    Raises:
        InvalidId: the tenant or the user cannot be an id.
    """
    owner = encode_token(tenant) if user is None else f"{encode_token(tenant)}.{encode_token(user)}"
    return f"*.{owner}.>"


def build_tenant_event_filter(tenant: str, event: str) -> str:
    """Return the filter of a derived event, such as `fact.proposed`, of a tenant's users, in all versions."""
    return f"memory.{encode_token(tenant)}.*.{event}.*"


def build_inbox_prefix(tenant: str) -> str:
    """Return the prefix of a tenant's inboxes, to which no other tenant may subscribe."""
    return f"_INBOX_{encode_ascii_name(tenant)}"


def encode_ascii_name(tenant: str) -> str:
    """Return a tenant's id in ASCII, for the prefix of its inboxes and for its user name at the NATS server.

    An id of letters, digits, `_` and `-` stays unchanged; any other becomes `~` and its token in hexadecimal.
    """
    return tenant if _PLAIN.match(tenant) else f"~{encode_token(tenant).encode().hex()}"


def build_thing_filter(tenant: str, user: str, thing: str) -> str:
    """Return the filter of a user's derived events with the `<thing>` of this name, such as `fact`."""
    return f"memory.{encode_token(tenant)}.{encode_token(user)}.{thing}.>"


def build_chat_filter(tenant: str, user: str, event: str) -> str:
    """Return the filter of a user's chat events with a name, such as `cleared`, in all conversations."""
    return f"chat.{encode_token(tenant)}.{encode_token(user)}.*.{event}.*"


def build_event_filter(event: str) -> str:
    """Return the filter of a derived event, such as `fact.proposed`, of all users and in all versions."""
    return f"memory.*.*.{event}.*"


@lru_cache(maxsize=65_536)
def parse_subject(subject: str) -> Address:
    """Parse a `chat`, `memory` or `ask` subject.

    Raises:
        InvalidSubject: the subject does not follow the grammar; the message names the invalid part and the
            expected form.
    """
    space, _, rest = subject.partition(".")
    tokens = rest.split(".")
    match space, tokens:
        case "chat", [tenant, user, conversation, name, version]:
            where = None if conversation == CURRENT else decode_token(conversation)
            return Address(
                "chat", *_decode_owner(tenant, user), where, _check_name(name), _parse_version(version)
            )
        case "memory", [tenant, user, thing, event, version]:
            name = f"{_check_name(thing)}.{_check_name(event)}"
            return Address("memory", *_decode_owner(tenant, user), None, name, _parse_version(version))
        case "ask", [tenant, user, verb, version]:
            return Address(
                "ask", *_decode_owner(tenant, user), None, _check_name(verb), _parse_version(version)
            )
        case "chat", _:
            expected = "chat.<tenant>.<user>.<conversation>.<event>.v<N>"
        case "memory", _:
            expected = "memory.<tenant>.<user>.<thing>.<event>.v<N>"
        case "ask", _:
            expected = "ask.<tenant>.<user>.<verb>.v<N>"
        case _:
            expected = "a subject of chat, memory or ask"
    raise InvalidSubject(f"subject {subject!r:.{_SHOWN}}: expected {expected}")


def find_origin(subject: str) -> SubjectOrigin | None:
    """Return owner and conversation of a `chat` or `memory` subject.

    The result is None if the subject names no user, and for any other subject.
    """
    match subject.split("."):
        case ["chat" | "memory" as space, tenant, user, *rest]:
            owner = _decode_any_spelling(tenant), _decode_any_spelling(user)
            is_named = space == "chat" and rest and rest[0] != CURRENT
            return (
                SubjectOrigin(space, owner, _decode_any_spelling(rest[0]) if is_named else None)
                if all(owner)
                else None
            )
    return None


def find_letter_origin(subject: str) -> SubjectOrigin | None:
    """Return the owner and the conversation that the subject of an event's dead letter names.

    The result is None if the subject names no user, and for dead letters of other messages, such as triggers.
    """
    return find_origin(subject.split(".", 2)[-1])


def _decode_any_spelling(token: str) -> str:
    """Return the id of a token in any spelling; "" if the token is not an id."""
    try:
        identifier = unquote_to_bytes(token).decode()
        encode_token(identifier)
    except (UnicodeError, InvalidId):
        return ""
    return identifier


def parse_owner(subject: str) -> tuple[str, str]:
    """Return the tenant and the user that the subject of a notice, or of a user's trigger, names.

    Raises:
        InvalidSubject: the subject is neither a notice nor a trigger of a user, or an id is misspelled.
    """
    match subject.split("."):
        case ["changed", tenant, user] | ["work", _, tenant, user]:
            return _decode_owner(tenant, user)
    raise InvalidSubject(
        f"subject {subject!r}: expected changed.<tenant>.<user> or work.<consumer>.<tenant>.<user>"
    )


def parse_conversation(subject: str) -> tuple[str, str, str]:
    """Return the tenant, the user and the conversation that the subject of a trigger names.

    The subject of a window has one more token, which is ignored.

    Raises:
        InvalidSubject: the subject lacks the tenant, the user or the conversation, or an id is misspelled.
    """
    match subject.split("."):
        case ["work", _, tenant, user, conversation] | ["work", _, tenant, user, conversation, _]:
            return *_decode_owner(tenant, user), decode_token(conversation)
    raise InvalidSubject(
        f"subject {subject!r}: expected work.<consumer>.<tenant>.<user>.<conversation> or "
        "work.<consumer>.<tenant>.<user>.<conversation>.<from_seq>"
    )


def _decode_owner(tenant: str, user: str) -> tuple[str, str]:
    return decode_token(tenant), decode_token(user)


def _check_name(token: str) -> str:
    if not _NAME.match(token):
        raise InvalidSubject(
            f"event or verb name {token!r}: expected lower-case letters and underscores, such as 'message'"
        )
    return token


def _parse_version(token: str) -> int:
    found = _VERSION.match(token)
    if not found:
        raise InvalidSubject(f"version {token!r}: expected v1, v2 and so on")
    return int(found[1])


def _percent_encode(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match[0].encode())
