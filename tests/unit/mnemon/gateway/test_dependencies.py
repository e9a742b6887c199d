"""Dependencies of the routes."""

from collections.abc import Iterator
from inspect import isasyncgenfunction, isclass, iscoroutinefunction
from typing import Any

from fastapi.routing import APIRoute

from mnemon.gateway.routes.changes import create_change_routes
from mnemon.gateway.routes.documents import create_document_routes
from mnemon.gateway.routes.events import create_event_routes
from mnemon.gateway.routes.verbs import create_verb_routes


def list_calls(dependant: Any) -> Iterator[Any]:
    for each in dependant.dependencies:
        yield each.call
        yield from list_calls(each)


def test_no_dependency_needs_a_thread() -> None:
    """FastAPI runs synchronous dependencies in a thread, which costs two thread switches for each request."""
    for routes in (create_change_routes, create_document_routes, create_event_routes, create_verb_routes):
        for route in routes().routes:
            assert isinstance(route, APIRoute)
            calls = list(list_calls(route.dependant))
            assert calls
            for call in calls:
                method = call if not hasattr(call, "model") else type(call).__call__
                assert not isclass(call)
                assert iscoroutinefunction(method) or isasyncgenfunction(method), (route.path, call)
