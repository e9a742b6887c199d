"""Command `mnemon tools`: print the memory tools for models."""

import json
from enum import StrEnum
from typing import Annotated

import typer


class ToolDialect(StrEnum):
    """Formats of tool definitions: those of three providers, and that of MCP."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"
    GOOGLE = "google"
    MCP = "mcp"


def tools(
    form: Annotated[
        ToolDialect,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="Format of the tools, of a provider or of MCP: openai, anthropic, google or mcp.",
        ),
    ] = ToolDialect.OPENAI,
) -> None:
    """Print the memory tools as JSON: the field `tools` of a request to a model, or of MCP's `tools/list`.

    Example: `mnemon tools --format anthropic`
    """
    from mnemon_contracts.function_tools import list_definitions

    typer.echo(json.dumps(list_definitions(form.value), ensure_ascii=False, indent=2))
