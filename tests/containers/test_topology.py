"""Streams, consumers and buckets on a NATS server in a container."""

from tests.containers.conftest import require_engine
from tests.integration.infra.broker.test_topology import *  # noqa: F403

require_engine()
