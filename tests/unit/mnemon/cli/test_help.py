"""Help of the commands: each has an example that parses, and names its options and exit codes."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_args

import pytest
import typer
from typer.testing import CliRunner

from mnemon.cli.app import app
from mnemon.cli.memory.history import HistoryCommand
from mnemon_contracts.settings.groups import Embedding
from tests.support.repository.command_lines import COMMAND, invocations, parse

WITHOUT_JSON = {
    # These commands run until they are stopped, and print no table.
    "up",
    "chat",
    "run",
    "admin",
    "gateway",
    "mcp",
    # This command always prints JSON.
    "tools",
    # These commands print no table.
    "auth limit",
    "auth revoke",
    "auth key revoke",
}

EXITS_WITH_1 = {
    "export jsonl",
    "export markdown",
    "status",
    "audit",
    "save",
    "get",
    "update",
    "forget",
    "erase",
    "document add",
    "rebuild",
    "bench",
    "demo",
}
"""Commands whose exit code scripts check; the help of each says when the code is 1."""

HEAVY = ("rich", "nats", "pydantic_settings", "sqlalchemy", "numpy", "faststream", "starlette", "mcp")


def commands(group: Any = COMMAND, above: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield each command with its full name; groups are left out."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*above, name))
        else:
            yield " ".join((*above, name)), command


COMMANDS = dict(commands())


def examples(command: Any) -> list[str]:
    return [" ".join(text.split()) for text in re.findall(r"Example: `([^`]+)`", command.help or "")]


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_an_example_that_parses(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = examples(COMMANDS[name])
    assert found, f"mnemon {name} --help has no example"
    for arguments in [each for example in found for each in invocations(example)]:
        for word in arguments:
            if re.fullmatch(r"\w[\w.-]*\.\w+", word):
                (tmp_path / word).touch()  # the command requires that the file exists
        parse(arguments)
    assert any(arguments[: len(name.split())] == name.split() for arguments in invocations(found[0]))


def test_invalid_example_is_detected() -> None:
    with pytest.raises(Exception, match="No such option"):
        parse(["history", "u42", "--tennant", "acme"])


def test_each_table_is_json_too() -> None:
    without = {
        name
        for name, command in COMMANDS.items()
        if not any("--json" in parameter.opts for parameter in command.params)
    }
    assert without == WITHOUT_JSON


@pytest.mark.parametrize("name", sorted(EXITS_WITH_1))
def test_help_names_exit_codes(name: str) -> None:
    assert re.search(r"[Ee]xits with\s+code (0 .*,\s)?1\b", COMMANDS[name].help)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_on_80_columns_is_whole(name: str) -> None:
    shown = CliRunner().invoke(app, [*name.split(), "--help"], env={"COLUMNS": "80"}).output
    assert "…" not in shown
    command = COMMANDS[name]
    types = [each.display_type_rich(command_context(command)) for each in command.params if not each.hidden]
    assert [each for each in types if each and each not in shown] == []


def test_names_of_arguments_are_upper_case() -> None:
    names = {
        argument.display_name_raw
        for command in COMMANDS.values()
        for argument in command.params
        if argument.param_type_name == "argument" and not argument.hidden
    }
    assert {name for name in names if name != name.upper()} == set()


def test_help_names_repeatable_options_once() -> None:
    usages = {
        name: " ".join(command.collect_usage_pieces(command_context(command)))
        for name, command in COMMANDS.items()
    }
    assert {name: usage for name, usage in usages.items() if "...}" in usage or "[[" in usage} == {}


@pytest.mark.parametrize("provider", get_args(Embedding.model_fields["provider"].annotation))
def test_calibrate_offers_every_embedding_provider(provider: str, tmp_path: Path) -> None:
    (pairs := tmp_path / "pairs.jsonl").touch()
    if provider != "none":  # it has no model
        parse(["calibrate", str(pairs), "--provider", provider])


def test_usage_line_names_no_hidden_argument() -> None:
    history = COMMANDS["history"]
    assert history.collect_usage_pieces(command_context(history)) == ["[OPTIONS]"]
    parse(["history", "u42", "--tenant", "acme"])


def test_usage_line_names_shown_arguments() -> None:
    other = typer.Typer(add_completion=False)

    @other.command(cls=HistoryCommand)
    def example(shown: str, kept: Annotated[str | None, typer.Argument(hidden=True)] = None) -> None:
        del shown, kept

    command = typer.main.get_command(other)
    assert command.collect_usage_pieces(command_context(command)) == ["[OPTIONS]", "{shown}"]


def command_context(command: Any) -> Any:
    return command.make_context(command.name, [], resilient_parsing=True)


def test_help_imports_no_heavy_module() -> None:
    code = f"import mnemon.cli.app, sys; print(*(name for name in {HEAVY} if name in sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []


def test_a_shell_completes_commands_and_settings() -> None:
    words = "mnemon settings get policy.m"
    asked = {"_MNEMON_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "3"}
    found = subprocess.run(
        [Path(sys.executable).with_name("mnemon")],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == ["policy.min_length", "policy.max_length"]
