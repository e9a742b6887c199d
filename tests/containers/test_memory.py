"""Published events become memory, over servers in containers."""

from tests.containers.conftest import require_engine
from tests.integration.consumers.retrieve.test_memory import *  # noqa: F403

require_engine()
