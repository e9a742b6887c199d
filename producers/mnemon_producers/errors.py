"""Errors that a bot can get from its memory."""

from mnemon_contracts.verbs.ask import AskError, RejectedEvent


class NotConnected(ConnectionError):
    """The client has no connection to NATS.

    Causes: `url` is not a string or has no address, no server answered or accepted the credentials, or the
    login that the environment names cannot be used. `problem` says what happened; `next_step` is empty if
    `problem` has the next step.
    """

    def __init__(self, problem: str, next_step: str = "") -> None:
        super().__init__(f"{problem}. {next_step}" if next_step else problem)
        self.problem = problem
        self.next_step = next_step


class PublishFailed(Exception):
    """An event is not known to be stored.

    The event may be stored, because the answer can be lost. Publishing the event again with `event_id` is
    harmless even if it is stored. `retryable` tells whether the server may accept the same event later.
    """

    def __init__(self, event_id: str, problem: str, *, retryable: bool) -> None:
        super().__init__(f"event {event_id!r} is not known to be stored: {problem}")
        self.event_id = event_id
        self.retryable = retryable


class EventRejected(Exception):
    """An event is in the log but cannot be used: the event became a dead letter and changed nothing.

    `seq` is its log position, `reason` the cause as a code, `problem` the cause in words. Publishing
    the same event again has the same result.
    """

    def __init__(self, rejected: RejectedEvent) -> None:
        super().__init__(
            f"event {rejected.seq} was rejected ({rejected.reason}): {rejected.error}. Publish a corrected "
            "event with a new id"
        )
        self.seq = rejected.seq
        self.reason = rejected.reason
        self.problem = rejected.error


class AskFailed(Exception):
    """A request got no result. `retryable` tells whether the same request may succeed later."""

    def __init__(self, error: AskError) -> None:
        super().__init__(f"{error.code}: {error.message}")
        self.error = error
        self.code = error.code
        self.message = error.message
        self.retryable = error.retryable


class TenantMoved(AskFailed):
    """The tenant has moved to another deployment: connect to `moved_to`, and publish and ask there.

    `moved_to` is the address of the NATS servers there, without a login. The old deployment still stores
    events that a bot publishes; the operator's `mnemon tenant move` forwards them, except removals of
    messages if the user has newer events in the other deployment.
    """

    def __init__(self, error: AskError) -> None:
        super().__init__(error)
        self.moved_to = error.moved_to
