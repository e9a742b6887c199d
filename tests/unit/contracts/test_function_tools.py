"""Definitions of the tools in the format of each provider, and requests from calls of the tools."""

import json
import re
from datetime import UTC, datetime
from typing import Any, get_args

import pytest

from mnemon_contracts.base import InvalidBody
from mnemon_contracts.function_tools import TOOLS, ToolFormat, list_definitions
from mnemon_contracts.registry import VERBS
from mnemon_contracts.verbs.tools import DocumentV1, SaveV1, SearchV2, TasksV1

NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
"""Pattern of the names that all providers accept."""


def functions(form: ToolFormat) -> list[tuple[str, str, dict[str, Any] | None]]:
    """Return name, description and parameters of each tool, from the fields that the provider reads."""
    tools = list_definitions(form)
    match form:
        case "openai":
            assert all(set(tool) == {"type", "function"} and tool["type"] == "function" for tool in tools)
            tools = [tool["function"] for tool in tools]
            return [(tool["name"], tool["description"], tool["parameters"]) for tool in tools]
        case "anthropic":
            assert all(set(tool) == {"name", "description", "input_schema"} for tool in tools)
            return [(tool["name"], tool["description"], tool["input_schema"]) for tool in tools]
        case "google":
            [declared] = tools
            return [
                (
                    tool["name"],
                    tool["description"],
                    tool.get("parameters") or tool.get("parametersJsonSchema"),
                )
                for tool in declared["functionDeclarations"]
            ]
        case "mcp":
            assert all(tool["annotations"]["readOnlyHint"] in (True, False) for tool in tools)
            return [(tool["name"], tool["description"], tool["inputSchema"]) for tool in tools]


@pytest.mark.parametrize("form", get_args(ToolFormat))
def test_tools_have_the_shape_of_the_provider(form: ToolFormat) -> None:
    shown = functions(form)
    assert [name for name, _, _ in shown] == list(TOOLS)
    for name, description, parameters in shown:
        assert NAME.fullmatch(name)
        assert 20 <= len(description) <= 1024
        if parameters is None:
            assert form == "google"
            assert not TOOLS[name].arguments
            continue
        assert parameters["type"] == "object"
        assert set(parameters["required"]) <= set(parameters["properties"])
        for field in parameters["properties"].values():
            assert field["type"] in ("string", "integer", "object", "array")
            assert field["type"] != "array" or field["items"]["type"] == "string"
            assert field["description"]
        written = json.dumps(parameters)
        assert "$ref" not in written
        assert "null" not in re.sub(r'"description": "[^"]*"', "", written)


def test_only_google_has_schemas_of_openapi() -> None:
    [declared] = list_definitions("google")
    for tool in declared["functionDeclarations"]:
        assert "additionalProperties" not in tool.get("parameters", {})
        assert tool.get("parameters", {"properties": True})["properties"], "an object names its properties"


def test_save_tool_describes_its_fields() -> None:
    parameters = TOOLS["memory_save"].build_parameters()
    assert parameters["required"] == ["text"]
    assert parameters["properties"]["importance"]["enum"] == ["high", "normal", "low"]
    assert parameters["properties"]["tier"]["enum"] == ["profile", "working", "archive"]
    assert parameters["properties"]["expires_at"]["format"] == "date-time"
    assert TOOLS["add_task"].build_parameters()["required"] == ["text"]


def test_importance_is_told_of_in_words_where_words_are_asked_for() -> None:
    for name in ("memory_save", "memory_update"):
        told = TOOLS[name].build_parameters()["properties"]["importance"]
        assert not re.search(r"\d", told["description"])
        assert "Importance" in told["description"]


def test_mcp_is_told_what_a_call_may_do() -> None:
    hints = {tool["name"]: tool["annotations"] for tool in list_definitions("mcp")}
    assert not any(hint["openWorldHint"] for hint in hints.values())
    assert {name for name, hint in hints.items() if hint.get("destructiveHint")} == {
        "memory_update",
        "memory_forget",
        "index_document",
        "set_user_data",
        "complete_task",
        "remove_task",
    }
    assert all(("destructiveHint" in hint) is not hint["readOnlyHint"] for hint in hints.values())


def test_models_are_told_to_forget_by_id() -> None:
    told = TOOLS["memory_forget"].description
    assert "id of the fact with memory_search first" in told
    assert "candidates" in told


@pytest.mark.parametrize(
    ("tool", "arguments", "field"),
    [
        ("memory_save", {"text": "Likes tea"}, "expires_at"),
        ("memory_update", {"id": "pf_001"}, "expires_at"),
        ("add_task", {"text": "Call Vera"}, "due_at"),
    ],
)
def test_day_in_an_argument_means_its_midnight_in_utc(
    tool: str, arguments: dict[str, str], field: str
) -> None:
    midnight = datetime(2026, 12, 1, tzinfo=UTC)
    for day in ("2026-12-01", "2026-12-01T00:00:00Z", "2026-12-01T03:00:00+03:00", "2026-12-01T00:00:00"):
        assert getattr(TOOLS[tool].build_request({**arguments, field: day}), field) == midnight
    for wrong in ("2026-13-01", "tomorrow", "5", 5, True, "1764547200", "0001-01-01"):
        with pytest.raises(InvalidBody) as refused:
            TOOLS[tool].build_request({**arguments, field: wrong})
        assert refused.value.field == field
    assert "bare date" in TOOLS[tool].build_parameters()["properties"][field]["description"]


def test_every_tool_is_made_of_its_contract() -> None:
    for tool in TOOLS.values():
        assert tool.verb in VERBS
        assert {*tool.arguments, *tool.fixed} <= set(tool.request.model_fields), tool.name


def test_call_of_a_tool_becomes_a_request() -> None:
    asked = TOOLS["memory_save"].build_request({"text": "Likes tea", "importance": "high", "tier": None})
    assert asked == SaveV1(text="Likes tea", importance="high")
    asked = TOOLS["search_documents"].build_request({"query": "tea"})
    assert asked == SearchV2(query="tea", scope=("documents",))
    asked = TOOLS["search_repos"].build_request({"query": "tea", "collection": "shop"})
    assert asked == SearchV2(query="tea", scope=("documents",), collection="shop", origin="repository")
    asked = TOOLS["memory_search"].build_request({"query": "tea", "scope": ["medium", "short"]})
    assert asked == SearchV2(query="tea", scope=("medium", "short"))
    asked = TOOLS["memory_search"].build_request({"query": "and when?", "preceding": ["Anna moved to Rome"]})
    assert asked == SearchV2(query="and when?", preceding=("Anna moved to Rome",))
    asked = TOOLS["index_document"].build_request({"text": "Tea is brewed at 80 degrees.", "title": "Tea"})
    assert asked == DocumentV1(action="add", text="Tea is brewed at 80 degrees.", title="Tea", limit=0)
    asked = TOOLS["complete_task"].build_request({"task_id": "t1"})
    assert asked == TasksV1(action="done", task_id="t1")
    for tool, arguments, field in (
        ("memory_save", {}, "text"),
        ("memory_save", {"text": "x", "colour": "red"}, "colour"),
        ("memory_save", {"text": "x", "tier": "high"}, "tier"),
        ("memory_search", {"query": "x", "preceding": ["a", "b", "c", "d", "e"]}, "preceding"),
        ("list_tasks", {"action": "add"}, "action"),
        ("add_task", {"text": None}, "text"),
    ):
        with pytest.raises(InvalidBody) as refused:
            TOOLS[tool].build_request(arguments)
        assert refused.value.field == field


@pytest.mark.parametrize("arguments", [None, [], ["text"], '{"text": "Likes tea"}', 7])
def test_arguments_that_are_no_object_are_refused(arguments: Any) -> None:
    with pytest.raises(InvalidBody, match="arguments: Input should be an object"):
        TOOLS["memory_read"].build_request(arguments)
