import asyncio

from mnemon import MemoryClient


async def main() -> None:
    async with MemoryClient.connect(tenant="acme") as memory:
        said = await memory.publish("u42", "user", "I live in Lisbon.")
        context = await memory.context("u42", min_seq=said)
        for message in context.messages:
            print(f"{message.role}: {message.content}")


asyncio.run(main())
