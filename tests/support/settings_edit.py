"""Changes of settings, for `change_settings`, from keyword arguments."""

from collections.abc import Callable
from typing import Any

from mnemon_contracts.settings.document import Document, set_value

Edit = Callable[[Document], Document]


def setting(**values: Any) -> Edit:
    """Return a change that sets these settings; `limits__per_user=5` sets `limits.per_user`."""

    def edit(document: Document) -> Document:
        for name, value in values.items():
            document = set_value(document, name.replace("__", "."), value)
        return document

    return edit
