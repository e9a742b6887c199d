"""The OpenAPI document of the gateway, from routes, contracts and their examples.

python -m mnemon.gateway.openapi            write mnemon/gateway/openapi.json
python -m mnemon.gateway.openapi --check    write nothing; if the file differs, show the differences and exit
                                            with code 1
"""

import argparse
import json
import sys
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, Final

from fastapi import FastAPI

from mnemon.gateway.application import build_application
from mnemon.gateway.openapi_document import DOCUMENT
from mnemon_contracts.export import ROOT, find_differences, write_files
from mnemon_contracts.publication.published import Examples, load_examples
from mnemon_contracts.registry import EVENTS, VERBS

_LARGEST: Final = 2**63 - 1
"""Largest log position."""

_PREFIX: Final = "#/components/schemas/"
_PROBLEM: Final = {
    "description": "The request has no result; `code` and `detail` say why.",
    "content": {"application/problem+json": {"schema": {"$ref": f"{_PREFIX}ProblemDetails"}}},
}
_EXAMPLES_OF: Final = {
    verb.name: f"ask.{verb.name}.v{len(verb.requests)}.request" for verb in VERBS.values()
} | {f"publish_{event.name}": f"{event.name}.v{len(event.versions)}" for event in EVENTS.values()}
"""Names of contracts by operation id: the request body of the operation has their published examples."""


def generate_document(application: FastAPI, examples: Examples) -> dict[str, Any]:
    """Return the document that FastAPI generates, adapted to the contracts.

    Bounds of integers become exact, optional parameters lose the value null, and problems get their own media
    type. Requests permit no unknown fields, and request bodies get the examples of the contracts.
    """
    document: dict[str, Any] = json.loads(json.dumps(FastAPI.openapi(application)))
    _restore_integers(document)
    schemas = document["components"]["schemas"]
    document["components"]["responses"] = {"Problem": _PROBLEM}
    bodies = []
    for operation in (each for path in document["paths"].values() for each in path.values()):
        for parameter in operation.get("parameters", ()):
            parameter["schema"] = _drop_null(parameter["schema"])
        statuses = [each for each in operation["responses"] if int(each) >= HTTPStatus.BAD_REQUEST]
        operation["responses"].update({key: {"$ref": "#/components/responses/Problem"} for key in statuses})
        for media in operation.get("requestBody", {}).get("content", {}).values():
            bodies.append(media["schema"])
            if shown := examples.get(_EXAMPLES_OF.get(operation["operationId"], "")):
                media["examples"] = {name: {"value": value} for name, value in shown.items()}
    _close_schemas(schemas, [name for body in bodies for name in _list_references(body)])
    return document


def _restore_integers(schema: object) -> None:
    """Make the bounds of integers exact: the framework writes them as floats, and 2**63 - 1 as 2**63."""
    match schema:
        case dict():
            if schema.get("type") == "integer":
                schema.update(
                    {
                        bound: min(int(schema[bound]), _LARGEST)
                        for bound in ("minimum", "maximum")
                        if bound in schema
                    }
                )
            for value in schema.values():
                _restore_integers(value)
        case list():
            for value in schema:
                _restore_integers(value)


def _drop_null(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a parameter without the type null: an optional parameter is left out instead."""
    kinds = [each for each in schema.get("anyOf", ()) if each != {"type": "null"}]
    if len(kinds) != 1:
        return schema
    return {**kinds[0], **{name: value for name, value in schema.items() if name != "anyOf"}}


def _close_schemas(schemas: dict[str, Any], names: list[str]) -> None:
    """Permit no unknown fields in the named schemas, and in the schemas to which they refer."""
    closed: set[str] = set()
    while names:
        name = names.pop()
        if name not in closed:
            closed.add(name)
            names += _list_references(schemas[name])
            if "properties" in schemas[name]:
                schemas[name].setdefault("additionalProperties", False)


def _list_references(schema: object) -> Iterator[str]:
    """Yield the names of the schemas to which a schema refers."""
    match schema:
        case dict():
            if isinstance(reference := schema.get("$ref"), str):
                yield reference.removeprefix(_PREFIX)
            for value in schema.values():
                yield from _list_references(value)
        case list():
            for value in schema:
                yield from _list_references(value)


def main(arguments: list[str]) -> int:
    """Run the command; return the exit code: 1 if the file differs and `--check` is given, otherwise 0."""
    parser = argparse.ArgumentParser(
        prog="python -m mnemon.gateway.openapi", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="Show the differences without writing the file; exit with code 1 if there are any.",
    )
    document = generate_document(build_application(), load_examples())
    files = {DOCUMENT.relative_to(ROOT): json.dumps(document, ensure_ascii=False, indent=2) + "\n"}
    if not parser.parse_args(arguments).check:
        write_files(ROOT, files)
        return 0
    if differences := find_differences(ROOT, files):
        print(
            *differences,
            "To bring the file up to date: python -m mnemon.gateway.openapi",
            sep="\n",
            file=sys.stderr,
        )
    return int(bool(differences))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
