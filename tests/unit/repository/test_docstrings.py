"""Docstrings name attributes and parameters that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PACKAGES = ("bench", "consumers", "contracts", "infra", "migrations", "mnemon", "producers")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def list_unknown_names(tree: ast.Module) -> list[str]:
    """Return the names in `Args:` and `Attributes:` that the class or function does not have."""
    unknown: list[str] = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        docstring = ast.get_docstring(node) or ""
        if not re.search(r"^(Args|Attributes):", docstring, re.MULTILINE):
            continue
        within = [each for part in ast.iter_child_nodes(node) for each in ast.walk(part)]
        functions = (
            [node] if isinstance(node, FUNCTIONS) else [e for e in node.body if isinstance(e, FUNCTIONS)]
        )
        parameters = {each.arg for f in functions for each in ast.walk(f.args) if isinstance(each, ast.arg)}
        fields = [each for part in node.body if not isinstance(part, FUNCTIONS) for each in ast.walk(part)]
        members = {
            each.id for each in fields if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        }
        members |= {each.name for each in functions}
        members |= {e.attr for e in within if isinstance(e, ast.Attribute) and isinstance(e.ctx, ast.Store)}
        is_class = isinstance(node, ast.ClassDef)
        known = {"Attributes": members, "Args": members | parameters if is_class else parameters}
        for section, names in known.items():
            text = re.search(rf"^{section}:\n((?: +.*\n?|\n)+)", docstring, re.MULTILINE)
            said = re.findall(r"^ {4}\**(\w+(?:, \**\w+)*):(?: |$)", text[1] if text else "", re.MULTILINE)
            unknown += [name for each in said for name in re.findall(r"\w+", each) if name not in names]
    return unknown


def test_docstrings_name_what_exists() -> None:
    paths = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    assert len(paths) > 100
    texts = {str(path): path.read_text("utf-8") for path in paths}
    unknown = {
        path: list_unknown_names(ast.parse(text))
        for path, text in texts.items()
        if re.search("(Args|Attributes):", text)
    }
    assert {path: names for path, names in unknown.items() if names} == {}


@pytest.mark.parametrize("code", ["class A:\n    new: int", "def f(new):\n    old = new"])
def test_a_renamed_member_is_found(code: str) -> None:
    section = "Attributes" if code.startswith("class") else "Args"
    head, _, body = code.partition("\n")
    assert list_unknown_names(
        ast.parse(f'{head}\n    """A.\n\n    {section}:\n        old: it.\n    """\n{body}')
    ) == ["old"]
