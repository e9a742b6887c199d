import asyncio

from mnemon import MemoryClient


async def main() -> None:
    async with MemoryClient.connect(tenant="acme") as memory:
        said = await memory.publish("u42", "user", "I live in Lisbon.")
        context = await memory.context("u42", min_seq=said)
        print(*context.messages, sep="\n")


asyncio.run(main())
