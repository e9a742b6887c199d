"""Stand-in that hides an installed aiohttp from the processes of the tests.

An installation of mnemon has no aiohttp, but the development environment has it, for the example of a bot on
Telegram. nats-py imports aiohttp if it is installed, which takes 0.15 s in each process.
"""

raise ModuleNotFoundError("the tests' processes go without", name=__name__)
