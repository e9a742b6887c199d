"""Changes of settings, in the few words that a test has for them."""

from collections.abc import Callable
from typing import Any

from mnemon_contracts.settings.document import Document, with_value

Edit = Callable[[Document], Document]


def setting(**values: Any) -> Edit:
    """Sets what is named, such as `limits__per_user=5`."""

    def edit(document: Document) -> Document:
        for name, value in values.items():
            document = with_value(document, name.replace("__", "."), value)
        return document

    return edit
