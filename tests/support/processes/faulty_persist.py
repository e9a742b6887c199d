"""A process of `persist` that hangs, or loses its subscriptions, on a signal.

SIGUSR1 blocks its event loop until its standard input has a line. SIGUSR2 makes the server forget its
subscriptions.
"""

import asyncio
import signal
import sys

from nats.js import JetStreamContext

from mnemon_consumers.app import run_consumers
from mnemon_infra.broker import broker
from mnemon_infra.config import Deployment


async def forget_readers() -> None:
    """Make the server forget the subscriptions of this process to `persist`, as after a bad reconnect."""
    for each in broker._running:
        for reader in each._readers.get("persist", ()):
            subscription = reader.subscription
            assert isinstance(subscription, JetStreamContext.PullSubscription)
            await each.connection._send_command(f"UNSUB {subscription._sub._id}\r\n".encode())
        await each.connection.flush()


async def forget_and_tell() -> None:
    await forget_readers()
    print("readers forgotten", flush=True)


async def main() -> None:
    """Run `persist` until SIGTERM."""
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    tasks: set[asyncio.Task[None]] = set()
    async with run_consumers(["persist"], Deployment()):
        loop.add_signal_handler(signal.SIGTERM, ended.set)
        loop.add_signal_handler(signal.SIGUSR1, sys.stdin.readline)
        loop.add_signal_handler(signal.SIGUSR2, lambda: tasks.add(asyncio.create_task(forget_and_tell())))
        await ended.wait()


if __name__ == "__main__":
    asyncio.run(main())
