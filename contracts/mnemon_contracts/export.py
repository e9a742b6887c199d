"""Write schemas, AsyncAPI and pages from the contracts, or check that they are up to date.

    python -m mnemon_contracts.export           write contracts/schemas/, contracts/asyncapi.json,
                                                docs/contracts.md and docs/settings.md
    python -m mnemon_contracts.export --check   write nothing; exit with code 1 if a file differs, and show
                                                the differences

The command refuses to overwrite a released schema with a schema that breaks its users.
"""

import argparse
import difflib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mnemon_contracts.publication import asyncapi, documentation, published, settings_page
from mnemon_contracts.publication.compatibility import find_breaking_changes
from mnemon_contracts.publication.published import Examples

ROOT = Path(__file__).parents[2]
"""Root folder of the source tree."""

SCHEMAS = published.SCHEMAS.relative_to(ROOT)


NOT_RELEASED = "if no release has the schema, delete the file"

MAKE_A_NEW_VERSION = (
    "add a new version instead: a new class beside the former one, both in "
    f"contracts/mnemon_contracts/registry.py, for an event with an upcaster; {NOT_RELEASED}"
)


def generate_files(examples: Examples) -> dict[Path, str]:
    """Return the text of every generated file, by path below `ROOT`."""
    schemas = {
        SCHEMAS / f"{name}.json": _format_json(published.generate_schema(name))
        for name in published.CONTRACTS
    }
    return schemas | {
        Path("contracts/asyncapi.json"): _format_json(asyncapi.build_document(examples)),
        Path("docs/contracts.md"): documentation.render_page(examples),
        Path("docs/settings.md"): settings_page.render_page(),
    }


def find_refusals(root: Path, files: Mapping[Path, str]) -> list[str]:
    """Return the reasons that forbid replacing the released schemas below `root` with `files`."""
    found = []
    for path in sorted((root / SCHEMAS).glob("*.json")):
        name = SCHEMAS / path.name
        if name not in files:
            found.append(
                f"{name}: no contract generates this schema; restore the contract, because released "
                f"versions stay; {NOT_RELEASED}"
            )
            continue
        changes = find_breaking_changes(json.loads(path.read_bytes()), json.loads(files[name]))
        found += [f"{name}: {change}; {MAKE_A_NEW_VERSION}" for change in changes]
    return found


def find_differences(root: Path, files: Mapping[Path, str]) -> list[str]:
    """Return the differences between the files below `root` and `files`, as unified diffs."""
    found = []
    for name, text in files.items():
        path = root / name
        present = path.read_text(encoding="utf-8") if path.exists() else ""
        if present != text:
            lines = difflib.unified_diff(
                present.splitlines(),
                text.splitlines(),
                f"{name} (present)",
                f"{name} (generated)",
                lineterm="",
            )
            found.append("\n".join(lines))
    return found


def write_files(root: Path, files: Mapping[Path, str]) -> None:
    """Write texts to files below `root`, and create absent folders.

    `files` has the text of each path; paths are relative to `root`.
    """
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Run the command; return 0, or 1 if it names problems, such as a file that `--check` finds different."""
    parser = argparse.ArgumentParser(
        prog="python -m mnemon_contracts.export", description=__doc__.partition("\n")[0]
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="Show the differences without writing files; exit with code 1 if a file differs, or if a "
        "change breaks a released schema.",
    )
    check = parser.parse_args(arguments).check
    try:
        files = generate_files(published.load_examples())
    except FileNotFoundError as error:
        print(error, file=sys.stderr)
        return 1
    problems = find_refusals(ROOT, files)
    if check:
        problems += find_differences(ROOT, files)
    elif not problems:
        write_files(ROOT, files)
    print(
        "\n".join(problems) or f"{len(files)} files are up to date",
        file=sys.stderr if problems else sys.stdout,
    )
    if check and problems:
        print(
            "To update files that differ, run: python -m mnemon_contracts.export",
            file=sys.stderr,
        )
    return 1 if problems else 0


def _format_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
