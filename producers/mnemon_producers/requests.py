"""Requests to the memory, answered by a typed reply or a typed error."""

import logging
from typing import TypeVar

import nats.errors
from nats.aio.client import Client
from pydantic import ValidationError

from mnemon_contracts.base import Contract, check_body_size, describe_first_problem
from mnemon_contracts.identity import MESSAGE_ID, scope_event_id
from mnemon_contracts.registry import VERBS
from mnemon_contracts.subjects import build_ask_subject
from mnemon_contracts.verbs.ask import AskError, ErrorCode, Reply
from mnemon_contracts.verbs.tools import DocumentV1, ForgetV1, TasksV1, UpdateV2
from mnemon_producers import tracing
from mnemon_producers.calls_in_flight import CLOSED, CallsInFlight
from mnemon_producers.connection import describe_excess, find_denial, require_payload_room
from mnemon_producers.errors import AskFailed, TenantMoved
from mnemon_producers.events import check_id
from mnemon_producers.timeouts import Timeouts

log = logging.getLogger("mnemon.client")

ReplyT = TypeVar("ReplyT", bound=Reply)

_UNCONFIRMED = (
    ", but the change may take effect; read the memory before you repeat the request, which may make another "
    "change"
)

_OTHER_VERSION = "Check that the client and the deployment have the same version of mnemon"


class Questioner:
    """Sender of requests for the users of one tenant.

    Args:
        connection: an open connection; the questioner does not close it.
        tenant: the tenant of the users.
        timeouts: timeouts of the requests.
    """

    def __init__(self, connection: Client, tenant: str, timeouts: Timeouts) -> None:
        self._connection = connection
        self._tenant = tenant
        self._timeouts = timeouts
        self._calls = CallsInFlight()

    async def close(self) -> None:
        """Wait for the requests in flight; further requests raise `AskFailed`."""
        await self._calls.close()

    async def ask(
        self,
        user: str,
        verb: str,
        request: Contract,
        expected: type[ReplyT],
        version: int = 1,
        request_id: str | None = None,
    ) -> ReplyT:
        """Send a request to `retrieve`, and wait for the reply.

        Args:
            user: the user whose memory the request is about.
            verb: name of the verb, such as `search`.
            request: the body of the request.
            expected: type of the reply.
            version: version of the verb whose contract `request` is, such as 2 for `SearchV2`.
            request_id: id of the request. A request that adds a fact, a task or a document, changes a fact by
                its id, or sets the user's data has its effect once for each `request_id`.

        Raises:
            InvalidId: `user` cannot be an id.
            InvalidBody: the request is too deep, see `Contract.check_nesting`, or larger than `BODY_LIMIT`.
            TenantMoved: the tenant has moved to another deployment.
            AskFailed: the request cannot be sent, no process answers the verb, no reply arrived in time, or
                the reply is invalid or has an error.
        """
        check_id("user", user)
        if self._calls.is_closing:
            raise _build_failure("unavailable", CLOSED, retryable=False)
        subject = build_ask_subject(self._tenant, user, verb, version)
        patience = self._timeouts.save if VERBS[verb].is_slow else self._timeouts.ask
        headers = tracing.build_trace_headers()
        if request_id is not None:
            headers[MESSAGE_ID] = scope_event_id(self._tenant, user, request_id)
        body = _encode_request(request)
        before = self._connection.last_error
        try:
            require_payload_room(self._connection, body, headers)
            with self._calls.count():
                answer = await self._connection.request(
                    subject, body, timeout=patience, headers=headers or None
                )
        except nats.errors.NoRespondersError as error:
            problem = f"no process answers {verb}; check with `mnemon status` that `retrieve` runs"
            if version > 1:
                problem += f", and upgrade it if it is too old for version {version} of {verb}"
            raise _build_failure("unavailable", problem) from error
        except TimeoutError as error:
            if reason := find_denial(self._connection, before, subject):
                raise _build_failure("refused", reason, retryable=False) from error
            if self._connection.is_closed:  # nats-py waits for the reply all the same
                problem = f"no reply to {verb}: the connection was closed; connect again"
                raise _build_failure("unavailable", problem, retryable=False) from error
            problem = f"no reply to {verb} within {patience} s"
            if _is_repeatable(request, request_id):
                raise _build_failure("timeout", f"{problem}; repeat the request") from error
            raise _build_failure("timeout", f"{problem}{_UNCONFIRMED}", retryable=False) from error
        except nats.errors.MaxPayloadError as error:
            problem = f"the request {verb} cannot be sent: {describe_excess(self._connection)}"
            raise _build_failure("refused", problem, retryable=False) from error
        except nats.errors.Error as error:
            raise _build_failure(
                "unavailable",
                f"the request {verb} cannot be sent: {error}; check the connection to the NATS server",
                retryable=not self._connection.is_closed,
            ) from error
        return _parse_reply(verb, expected, answer.data)


def _is_repeatable(request: Contract, request_id: str | None) -> bool:
    """Return whether a request that took effect has no further effect if it is repeated."""
    match request:
        case TasksV1(action="add", task_id=None) | DocumentV1(action="add", document_id=None):
            return request_id is not None
        case UpdateV2(query=str()) | ForgetV1(query=str()):
            return False
    return True


def _encode_request(request: Contract) -> bytes:
    """Return the JSON of a request without fields that are None or were not given.

    For absent fields, `retrieve` uses the values of the settings, if there are any.

    Raises:
        InvalidBody: the request is too deep, see `Contract.check_nesting`, or larger than `BODY_LIMIT`.
    """
    request.check_nesting()
    body = request.model_dump_json(exclude_unset=True, exclude_none=True).encode()
    check_body_size(body)
    return body


def _parse_reply(verb: str, expected: type[ReplyT], body: bytes) -> ReplyT:
    try:
        reply = expected.model_validate_json(body)
    except ValidationError as error:
        raise _build_failure(
            "internal", f"the reply to {verb} is invalid: {describe_first_problem(error)}. {_OTHER_VERSION}"
        ) from error
    if reply.error:
        raise TenantMoved(reply.error) if reply.error.code == "moved" else AskFailed(reply.error)
    for warning in reply.warnings or ():
        log.warning("reply warning received verb=%s warning=%s", verb, warning)
    if "seen_seq" not in reply.model_fields_set:  # the one field that every reply has
        raise _build_failure(
            "internal", f"the reply to {verb} is invalid: `seen_seq` is missing. {_OTHER_VERSION}"
        )
    return reply


def _build_failure(code: ErrorCode, message: str, *, retryable: bool = True) -> AskFailed:
    return AskFailed(AskError(code=code, message=message, retryable=retryable))
