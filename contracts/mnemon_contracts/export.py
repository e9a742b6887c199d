"""Write what is published of the contracts, or check that it is up to date.

    python -m mnemon_contracts.export           write contracts/schemas/, contracts/asyncapi.json,
                                         docs/contracts.md and docs/settings.md
    python -m mnemon_contracts.export --check   write nothing; exit 1 and say what differs

A schema that is there already is never overwritten by one that would break those who rely on it.
"""

import argparse
import difflib
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mnemon_contracts.publication import asyncapi, documentation, published, settings_page
from mnemon_contracts.publication.compatibility import breaking_changes
from mnemon_contracts.publication.published import Examples

ROOT = Path(__file__).parents[2]
"""Of the source tree."""

SCHEMAS = published.SCHEMAS.relative_to(ROOT)


MAKE_A_NEW_VERSION = (
    "make a v2 instead: a new class, an upcaster, and both in contracts/mnemon_contracts/registry.py"
)


def generated(examples: Examples) -> dict[Path, str]:
    """The text of every file that is written, by path below `ROOT`."""
    schemas = {SCHEMAS / f"{name}.json": _json(published.schema_of(name)) for name in published.CONTRACTS}
    return schemas | {
        Path("contracts/asyncapi.json"): _json(asyncapi.document(examples)),
        Path("docs/contracts.md"): documentation.page(examples),
        Path("docs/settings.md"): settings_page.page(),
    }


def refusals(root: Path, files: Mapping[Path, str]) -> list[str]:
    """Why the released schemas below `root` must not give way to `files`; empty when they may."""
    found = []
    for path in sorted((root / SCHEMAS).glob("*.json")):
        name = SCHEMAS / path.name
        if name not in files:
            found.append(f"{name}: has no contract; what was released is read for ever: put it back")
            continue
        changes = breaking_changes(json.loads(path.read_bytes()), json.loads(files[name]))
        found += [f"{name}: {change}; {MAKE_A_NEW_VERSION}" for change in changes]
    return found


def differences(root: Path, files: Mapping[Path, str]) -> list[str]:
    """What below `root` is not as in `files`, as unified diffs."""
    found = []
    for name, text in files.items():
        path = root / name
        present = path.read_text(encoding="utf-8") if path.exists() else ""
        if present != text:
            lines = difflib.unified_diff(
                present.splitlines(),
                text.splitlines(),
                f"{name} as it is",
                f"{name} as it should be",
                lineterm="",
            )
            found.append("\n".join(lines))
    return found


def write(root: Path, files: Mapping[Path, str]) -> None:
    """Write the files below `root`."""
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Run the command; 0 when all is well, 1 when something differs or is refused."""
    parser = argparse.ArgumentParser(
        prog="python -m mnemon_contracts.export", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 and say what differs")
    check = parser.parse_args(arguments).check
    files = generated(published.examples())
    problems = refusals(ROOT, files)
    if check:
        problems += differences(ROOT, files)
    elif not problems:
        write(ROOT, files)
    print(
        "\n".join(problems) or f"{len(files)} files are up to date",
        file=sys.stderr if problems else sys.stdout,
    )
    if check and problems:
        print("To bring them up to date: python -m mnemon_contracts.export", file=sys.stderr)
    return 1 if problems else 0


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
