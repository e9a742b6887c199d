"""A stored message as a consumer's `decide` gets it: a plain value, without a connection."""

from typing import NamedTuple, Self

from nats.aio.msg import Msg


class Delivery(NamedTuple):
    """One delivery of a stored message.

    Attributes:
        deliveries: number of deliveries of the message, this one included.
        stored_at: the time at which the stream stored the message, in seconds since 1970.
        traceparent: the header `traceparent` of the message; None without that header.
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
    def from_message(cls, message: Msg) -> Self:
        """Return the delivery in the reply subject that the server wrote.

        nats-py's `metadata` returns the same values in five times the time, and every message passes here.
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
