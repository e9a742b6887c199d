"""What the streams have."""

from nats.js import JetStreamContext
from pydantic import BaseModel, ConfigDict

from mnemon_infra.broker.provisioning.topology import STREAMS


class StreamState(BaseModel):
    """A stream: messages and bytes kept, and the sequence of the last one ever."""

    model_config = ConfigDict(frozen=True)

    messages: int
    bytes: int
    last_seq: int


async def streams_of(stream_context: JetStreamContext) -> dict[str, StreamState]:
    """Those of ours that are there.

    Raises:
        nats.errors.Error: the server does not answer.
    """
    wanted = [str(config.name) for config in STREAMS]
    return {
        str(info.config.name): StreamState(
            messages=info.state.messages, bytes=info.state.bytes, last_seq=info.state.last_seq
        )
        for info in await stream_context.streams_info()
        if info.config.name in wanted
    }
