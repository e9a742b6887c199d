"""State of the streams."""

from nats.js import JetStreamContext
from pydantic import BaseModel, ConfigDict

from mnemon_infra.broker.provisioning.topology import STREAMS


class StreamState(BaseModel):
    """State of a stream: messages and bytes that it keeps, and the sequence of the last message ever."""

    model_config = ConfigDict(frozen=True)

    messages: int
    bytes: int
    last_seq: int


async def load_stream_states(stream_context: JetStreamContext) -> dict[str, StreamState]:
    """Return the state of each stream of mnemon that exists, by name."""
    wanted = [str(config.name) for config in STREAMS]
    return {
        str(info.config.name): StreamState(
            messages=info.state.messages, bytes=info.state.bytes, last_seq=info.state.last_seq
        )
        for info in await stream_context.streams_info()
        if info.config.name in wanted
    }
