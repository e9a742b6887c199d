"""The memory tools as function definitions for models, generated from the contracts."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from mnemon_contracts.base import Contract, InvalidBody
from mnemon_contracts.registry import VERBS

ToolFormat = Literal["openai", "anthropic", "google", "mcp"]

_FOR_CHECKING_ONLY: Final = ("title", "default", "minLength", "maxLength")


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A verb, or one action of a verb, as a function for models.

    Attributes:
        description: text for the model: effect and purpose of the function.
        arguments: fields of the request that the model sets.
        required: arguments that the model must set, besides the required fields of the contract.
        fixed: fields with a constant value.
        changes: whether the call changes memory.
        adds: whether a call that changes memory is shown to MCP as not destructive.
    """

    name: str
    description: str
    verb: str
    arguments: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    changes: bool = True
    adds: bool = False

    @property
    def request(self) -> type[Contract]:
        return VERBS[self.verb].requests[-1]

    def build_parameters(self) -> dict[str, Any]:
        """Return the JSON Schema of the arguments, without references."""
        schema = self.request.model_json_schema()
        definitions = schema.get("$defs", {})
        needed = {*schema.get("required", ()), *self.required}
        return {
            "type": "object",
            "properties": {
                name: _simplify_schema(schema["properties"][name], definitions) for name in self.arguments
            },
            "required": [name for name in self.arguments if name in needed],
            "additionalProperties": False,
        }

    def build_request(self, arguments: Mapping[str, Any]) -> Contract:
        """Return the request of the verb for a call with these arguments.

        Raises:
            InvalidBody: an argument is unknown, missing or wrong, or the arguments are not an object.
        """
        # A model writes the arguments as JSON, which may be any value.
        if not isinstance(arguments, Mapping):
            raise InvalidBody("arguments", "Input should be an object, with a field for each argument")
        for name in arguments:
            if name not in self.arguments:
                known = ", ".join(self.arguments) or "none"
                raise InvalidBody(name, f"is not an argument of {self.name}; its arguments: {known}")
        for name in self.required:
            if arguments.get(name) is None:
                raise InvalidBody(name, f"is missing; give this argument, which {self.name} needs")
        given = {name: value for name, value in arguments.items() if value is not None}
        return self.request.parse(json.dumps(given | dict(self.fixed)).encode())


TOOLS: Final[Mapping[str, FunctionTool]] = {
    tool.name: tool
    for tool in (
        FunctionTool(
            "memory_save",
            "Keep a lasting fact about the user: who they are, what they like, what they plan. One sentence "
            "that is clear without context. Do not save secrets, questions, or facts that matter only "
            "briefly. The reply says whether the fact was saved, already known or rejected, with the reason.",
            "save",
            ("text", "tier", "importance", "expires_at"),
            adds=True,
        ),
        FunctionTool(
            "memory_read",
            "List the facts kept about the user, by tier. To find one fact, use memory_search. "
            "The reply has the number of facts as total; if the reply has next, call again with that value "
            "as after.",
            "read",
            ("tier", "limit", "after"),
            changes=False,
        ),
        FunctionTool(
            "memory_search",
            "Search the user's memory for a question, in any language. Without scope, facts are searched.",
            "search",
            ("query", "limit", "scope", "preceding"),
            changes=False,
        ),
        FunctionTool(
            "memory_get",
            "Show one fact by its id, such as pf_001, with its former versions; or one message, document "
            "or summary, whole, by the id of a hit and its scope. Of a long document, the reply has a part "
            "and next_offset: call again with that value as offset.",
            "get",
            ("id", "scope", "offset"),
            changes=False,
        ),
        FunctionTool(
            "memory_update",
            "Correct one fact. Fields that are left out stay. Find the id of the fact with memory_search "
            "first, and call this tool with the id. A query changes a fact only if it clearly means that "
            "fact; otherwise nothing is changed, and the reply lists candidates: ask the user, then call "
            "this tool with an id.",
            "update",
            ("id", "query", "text", "tier", "importance", "expires_at"),
        ),
        FunctionTool(
            "memory_forget",
            "Remove one fact, when the user asks for it. Find the id of the fact with memory_search first, "
            "and call this tool with the id. A query removes a fact only if it clearly means that fact; "
            "otherwise nothing is removed, and the reply lists candidates: ask the user, then call this tool "
            "with an id.",
            "forget",
            ("id", "query"),
        ),
        FunctionTool(
            "search_messages",
            "Search earlier conversations with the user.",
            "search",
            ("query", "limit"),
            fixed={"scope": ["messages"]},
            changes=False,
        ),
        FunctionTool(
            "search_documents",
            "Search the user's documents for passages that are relevant to a question. A hit has its lines "
            "in the document; memory_get shows the document, by the id of the hit and the scope documents.",
            "search",
            ("query", "limit", "collection"),
            fixed={"scope": ["documents"]},
            changes=False,
        ),
        FunctionTool(
            "search_repos",
            "Search the repositories that were indexed for the user for passages of code and text; with "
            "collection, search one repository. A hit has its file and lines.",
            "search",
            ("query", "limit", "collection"),
            fixed={"scope": ["documents"], "origin": "repository"},
            changes=False,
        ),
        FunctionTool(
            "index_document",
            "Index a whole text, so that search_documents finds its passages. The same document_id again "
            "replaces the former text. For one sentence about the user, call memory_save instead.",
            "document",
            ("text", "document_id", "title", "source", "collection"),
            required=("text",),
            fixed={"action": "add", "limit": 0},
        ),
        FunctionTool(
            "set_user_data",
            "Set fields of the user's data, such as name, language or city; null removes a field.",
            "profile",
            ("fields",),
            required=("fields",),
        ),
        FunctionTool(
            "list_tasks", "List the user's tasks.", "tasks", fixed={"action": "list"}, changes=False
        ),
        FunctionTool(
            "add_task",
            "Add a task for the user.",
            "tasks",
            ("text", "due_at"),
            required=("text",),
            fixed={"action": "add"},
            adds=True,
        ),
        FunctionTool(
            "complete_task",
            "Mark a task of the user as done, by its id.",
            "tasks",
            ("task_id",),
            required=("task_id",),
            fixed={"action": "done"},
        ),
        FunctionTool(
            "remove_task",
            "Remove a task of the user, by its id.",
            "tasks",
            ("task_id",),
            required=("task_id",),
            fixed={"action": "remove"},
        ),
    )
}


def list_definitions(form: ToolFormat) -> list[dict[str, Any]]:
    """Return the definitions of all tools in one format.

    The result is the value of the field `tools` in a request to a model, or in MCP's `tools/list`.
    """
    if form == "google":
        return [{"functionDeclarations": [_define_google_tool(tool) for tool in TOOLS.values()]}]
    write = {"openai": _define_openai_tool, "anthropic": _define_anthropic_tool, "mcp": define_mcp_tool}[form]
    return [write(tool) for tool in TOOLS.values()]


def _define_openai_tool(tool: FunctionTool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.build_parameters()}
    return {"type": "function", "function": function}


def _define_anthropic_tool(tool: FunctionTool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": tool.build_parameters()}


def _define_google_tool(tool: FunctionTool) -> dict[str, Any]:
    declaration: dict[str, Any] = {"name": tool.name, "description": tool.description}
    parameters = tool.build_parameters()
    properties = parameters["properties"]
    # `parameters` is a schema of OpenAPI 3.0, in which every object has to name its properties.
    if any(each["type"] == "object" for each in properties.values()):
        declaration["parametersJsonSchema"] = parameters
    elif properties:
        declaration["parameters"] = {
            name: value for name, value in parameters.items() if name != "additionalProperties"
        }
    return declaration


def define_mcp_tool(tool: FunctionTool) -> dict[str, Any]:
    """Return one tool in the form of MCP's `tools/list`."""
    hints = {"readOnlyHint": not tool.changes, "openWorldHint": False}
    if tool.changes:
        hints["destructiveHint"] = not tool.adds
    return {
        "name": tool.name,
        "description": tool.description,
        "inputSchema": tool.build_parameters(),
        "annotations": hints,
    }


def _simplify_schema(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema for models: without references, the keys of `_FOR_CHECKING_ONLY`, and null.

    A model can omit an optional field. If a value may have several types, keep one type; an enumeration takes
    precedence.
    """
    if "$ref" in schema:
        definition = definitions[schema["$ref"].rpartition("/")[2]]
        return _simplify_schema(
            {**definition, **{key: schema[key] for key in schema if key != "$ref"}}, definitions
        )
    plain = {key: value for key, value in schema.items() if key not in _FOR_CHECKING_ONLY}
    choices = [choice for choice in plain.pop("anyOf", ()) if choice.get("type") != "null"]
    if choices:
        words = [choice for choice in choices if "enum" in choice]
        # The description of the words replaces the description of the choices.
        plain = {**plain, **words[0]} if words else {**_simplify_schema(choices[0], definitions), **plain}
    if plain.get("type") == "object":
        # The schema allows any field with any value.
        return {"type": "object", **{key: value for key, value in plain.items() if key == "description"}}
    if "items" in plain:
        plain["items"] = _simplify_schema(plain["items"], definitions)
    return plain
