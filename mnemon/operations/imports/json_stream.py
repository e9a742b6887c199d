"""Parser of large JSON files as a stream, with a limit on the depth of nesting.

The prefixes of ijson grow with the square of the depth: a file of nothing but brackets would take all memory.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import ijson

from mnemon.operations.imports.records import NotReadable

MAX_DEPTH: Final = 200
"""Maximum depth of nested lists and objects, in levels; an export of a chat has about 12."""


def parse_json(file: BinaryIO) -> Iterator[tuple[str, str, Any]]:
    """Yield prefix, event and value of each token, as `ijson.parse` does.

    Raises:
        NotReadable: the file is nested too deeply.
        JSONError, UnicodeDecodeError: the file is not JSON.
    """
    yield from ijson.parse(_limit_depth(file))


def _limit_depth(file: BinaryIO) -> Iterator[tuple[str, Any]]:
    depth = 0
    for event, value in ijson.basic_parse(file, use_float=True):
        if event in ("start_map", "start_array"):
            depth += 1
            if depth > MAX_DEPTH:
                raise NotReadable(
                    f"lists and objects are nested too deeply: they have more than {MAX_DEPTH} levels"
                )
        elif event in ("end_map", "end_array"):
            depth -= 1
        yield event, value
