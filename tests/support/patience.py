"""Timeouts of a client on a busy machine, which takes longer than a bot waits."""

from typing import Final

from mnemon_producers.timeouts import Timeouts

PATIENT: Final = Timeouts(publish=20, ask=60, save=60)
