"""A message as a consumer's `decide` sees it: a plain value, without a connection."""

from typing import NamedTuple, Self

from nats.aio.msg import Msg


class Delivery(NamedTuple):
    """One delivery of a stored message.

    `stored_at` is when the log took it, in seconds since 1970; `traceparent` the trace that it came with.
    """

    subject: str
    body: bytes
    message_id: str | None
    stream: str
    sequence: int
    deliveries: int
    stored_at: float
    traceparent: str | None = None

    @classmethod
    def of(cls, message: Msg) -> Self:
        """Read what the server wrote into the reply subject.

        nats-py's `metadata` gives the same, at five times the price: this is the hot path.
        """
        fields = message.reply.split(".")
        # $JS.ACK.<stream>.<consumer>.<deliveries>.<sequence>.<consumer sequence>.<nanoseconds>.<pending>;
        # servers with a domain put it and an account hash before the stream.
        if len(fields) > 9:
            fields = fields[2:]
        headers = message.headers
        return cls(
            message.subject,
            message.data,
            headers.get("Nats-Msg-Id") if headers else None,
            fields[2],
            int(fields[5]),
            int(fields[4]),
            int(fields[7]) / 1e9,
            headers.get("traceparent") if headers else None,
        )
