"""Server that answers NATS requests with fixed bytes, in a separate process: stock nats-py and no more.

The benches `retrieve`, `context` and `search` compare with it.
"""

import asyncio
import sys

import nats
from nats.aio.msg import Msg

SUBJECT = "mnemon_bench.baselines.echo"
_REPLY = b"x" * 2000


async def serve_echo(nats_url: str) -> None:
    """Answer every request with 2,000 bytes, about the size of a `history` reply, until killed."""
    connection = await nats.connect(nats_url)

    async def answer(message: Msg) -> None:
        await message.respond(_REPLY)

    await connection.subscribe(SUBJECT, queue="echo", cb=answer)
    await connection.flush()
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve_echo(sys.argv[1]))
