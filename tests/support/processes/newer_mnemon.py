"""The `mnemon` of a version to come, which knows version 2 of a message. Run as `mnemon` is, by its name."""

from dataclasses import replace
from typing import Any

from pydantic import Field

from mnemon.__main__ import main
from mnemon_contracts.base import Text
from mnemon_contracts.events.chat import MessageV1
from mnemon_contracts.registry import EVENTS


class MessageV2(MessageV1):
    """A message, and the mood it was written in."""

    mood: Text = Field(description="The mood.")


def _to_v2(body: dict[str, Any]) -> dict[str, Any]:
    return body | {"mood": "unknown"}


if __name__ == "__main__":
    assert isinstance(EVENTS, dict)
    EVENTS["message"] = replace(EVENTS["message"], versions=(MessageV1, MessageV2), upcasters=(_to_v2,))
    main()
