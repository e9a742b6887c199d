"""Alignment in several threads at once."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from concurrent.futures import ThreadPoolExecutor
from mnemon_consumers.domain.alignment.parser import parse_text

TEXTS = [f"{word} {number} дней" for word in ("Works", "Работает") for number in range(50)]
with ThreadPoolExecutor(4) as threads:
    found = list(threads.map(parse_text, 4 * TEXTS))
assert found[:100] == [parse_text(text) for text in TEXTS]
"""


@pytest.mark.long
def test_threads_that_load_the_lexicon_at_once_read_the_same() -> None:
    root = Path(__file__).parents[5]
    ended = subprocess.run([sys.executable, "-c", PROGRAM], cwd=root, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")
