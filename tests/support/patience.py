"""Timeouts of a client for tests: longer than the defaults, because the machine may be busy."""

from typing import Final

from mnemon_producers.timeouts import Timeouts

PATIENT: Final = Timeouts(publish=20, ask=60, save=60)
