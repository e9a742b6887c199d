"""The glossary and the code map name modules and files that exist."""

import importlib
import re

import pytest

from mnemon_contracts.export import ROOT

GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
ENTRIES = re.findall(r"^\| ([^|`]+) \| [^|]+ \| ([^|]+) \|$", GLOSSARY, re.MULTILINE)
WORDS = [(word, where) for word, where in ENTRIES if word not in ("word", "---")]
FOLDERS = "contracts|producers|consumers|infra|mnemon|migrations|bench"


@pytest.mark.parametrize(("word", "where"), WORDS, ids=[word for word, _ in WORDS])
def test_every_module_of_the_glossary_can_be_imported(word: str, where: str) -> None:
    modules = re.findall(r"`([\w.]+)`", where)
    assert modules
    for module in modules:
        importlib.import_module(module)


def test_every_word_has_one_entry() -> None:
    words = [word for word, _ in WORDS]
    assert sorted(set(words)) == sorted(words)
    assert len(words) > 80


@pytest.mark.parametrize("page", ["docs/code-map.md", "CONTRIBUTING.md"])
def test_every_file_of_the_code_map_exists(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    paths = re.findall(rf"`((?:{FOLDERS})/[\w./-]+)`", text)
    assert len(paths) > 5
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_code_map_has_every_package_of_infra_and_consumers() -> None:
    text = (ROOT / "docs" / "code-map.md").read_text(encoding="utf-8")
    packages = [
        path.parent.relative_to(ROOT)
        for area in ("infra/mnemon_infra", "consumers/mnemon_consumers")
        for path in (ROOT / area).glob("*/__init__.py")
    ]
    assert [str(package) for package in packages if f"`{package}" not in text] == []
