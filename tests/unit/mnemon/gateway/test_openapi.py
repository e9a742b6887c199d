"""Parts of the OpenAPI document that FastAPI does not generate."""

from collections.abc import Iterator
from typing import Any

import pytest

from mnemon.gateway.openapi_document import read_document


def list_schemas(part: object) -> Iterator[dict[str, Any]]:
    match part:
        case dict():
            yield part
            for each in part.values():
                yield from list_schemas(each)
        case list():
            for each in part:
                yield from list_schemas(each)


@pytest.mark.parametrize("bound", ["minimum", "maximum"])
def test_bounds_of_integers_are_exact(bound: str) -> None:
    bounds = [
        each[bound]
        for each in list_schemas(read_document())
        if each.get("type") == "integer" and bound in each
    ]
    assert bounds
    assert all(isinstance(each, int) and each <= 2**63 - 1 for each in bounds)


def test_parameters_are_not_null() -> None:
    for operations in read_document()["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                assert {"type": "null"} not in list_schemas(parameter["schema"]), operation["operationId"]
