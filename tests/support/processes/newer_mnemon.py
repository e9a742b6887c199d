"""A newer `mnemon` with version 2 of `message`; `python -m` runs this module in the place of `mnemon`."""

from dataclasses import replace
from typing import Any

from pydantic import Field

from mnemon.__main__ import main
from mnemon_contracts.base import Text
from mnemon_contracts.events.chat import MessageV1
from mnemon_contracts.registry import EVENTS


class MessageV2(MessageV1):
    """Version 2 of a message, with the further required field `mood`."""

    mood: Text = Field(description="The mood.")


def _to_v2(body: dict[str, Any]) -> dict[str, Any]:
    return body | {"mood": "unknown"}


if __name__ == "__main__":
    assert isinstance(EVENTS, dict)
    EVENTS["message"] = replace(EVENTS["message"], versions=(MessageV1, MessageV2), upcasters=(_to_v2,))
    main()
