"""Deployments of benches change existing fields only: `model_copy` ignores unknown names without an error."""

import ast
from collections.abc import Iterator
from pathlib import Path

import mnemon_bench
from mnemon_infra.config import Deployment


def list_changed_fields(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(
                func=ast.Attribute(attr="model_copy"),
                keywords=[ast.keyword(arg="update", value=ast.Dict(keys=keys))],
            ):
                yield from (str(key.value) for key in keys if isinstance(key, ast.Constant))


def test_benches_change_fields_that_exist() -> None:
    paths = Path(mnemon_bench.__file__).parent.rglob("*.py")
    changed = {name for path in paths for name in list_changed_fields(path)}
    assert "extract_seconds" in changed
    assert changed <= Deployment.model_fields.keys()
