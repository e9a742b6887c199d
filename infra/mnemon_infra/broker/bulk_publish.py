"""Many small core messages at once."""

from collections.abc import Sequence

from nats.aio.client import Client


async def publish_all(connection: Client, messages: Sequence[tuple[str, bytes]]) -> None:
    """Publish messages without headers, as (subject, body), in one write.

    nats-py's `publish` checks and counts each message and looks whether to flush: of what persist does with
    a message, a fifth. The subjects here need no check: the server gave them, or `contracts` did.

    Raises:
        nats.errors.Error: the connection is closed, or too much waits for it.
    """
    if not messages:
        return
    if not connection.is_connected:
        for subject, body in messages:
            await connection.publish(subject, body)  # kept until the connection stands again
        return
    await connection._send_command(
        b"".join(b"PUB %b %d\r\n%b\r\n" % (subject.encode(), len(body), body) for subject, body in messages)
    )
    connection.stats["out_msgs"] += len(messages)
    connection.stats["out_bytes"] += sum(len(body) for _, body in messages)
    await connection._flush_pending()
