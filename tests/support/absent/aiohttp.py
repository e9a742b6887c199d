"""Not there for the processes of the tests, as it is not for those of an installation.

The example of a bot for Telegram brings it along, and nats-py imports it wherever it is: 0.15 s each time.
"""

raise ModuleNotFoundError("the tests' processes go without", name=__name__)
