"""Parser of large JSON files as a stream, with a limit on the depth of nesting.

ijson gives each token its path as a prefix. The prefixes take memory that grows with the square of the depth:
a file with brackets only would use all memory.
"""

from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Any, BinaryIO, Final

import ijson
from ijson.common import JSONError

from mnemon.operations.imports.records import NotReadable

MAX_DEPTH: Final = 200
"""Maximum depth of nested lists and objects, in levels; an export of a chat has about 12."""


def parse_json(file: BinaryIO, name: str) -> Iterator[tuple[str, str, Any]]:
    """Yield prefix, event and value of each token, as `ijson.parse` does.

    `name` is the name that the file has in an export, for the messages of errors.

    Raises:
        NotReadable: the file is not JSON, is incomplete, or is nested too deeply.
    """
    try:
        yield from ijson.parse(_limit_depth(_MarkStrippingFile(file)))
    except (JSONError, UnicodeDecodeError) as error:
        said = _describe_parse_error(error)
        raise NotReadable(
            f"the file is not JSON, or is incomplete: {said}; give a complete file {name}"
        ) from error


def _describe_parse_error(error: JSONError | UnicodeDecodeError) -> str:
    """Return the first line of the message of an error; the lines after it quote the file.

    The message of ijson is bytes if the quoted part of the file is not UTF-8.
    """
    said = error.args[0]
    text = said.decode(errors="replace") if isinstance(said, bytes) else str(error)
    return text.partition("\n")[0]


class _MarkStrippingFile:
    """A file of JSON, read without the byte order mark that some programs write before UTF-8 text."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._beginning = file.read(len(BOM_UTF8)).removeprefix(BOM_UTF8)

    def read(self, size: int) -> bytes:
        beginning, self._beginning = self._beginning[:size], self._beginning[size:]
        return beginning or self._file.read(size)


def _limit_depth(file: _MarkStrippingFile) -> Iterator[tuple[str, Any]]:
    depth = 0
    for event, value in ijson.basic_parse(file, use_float=True):
        if event in ("start_map", "start_array"):
            depth += 1
            if depth > MAX_DEPTH:
                raise NotReadable(
                    f"lists and objects are nested too deeply, in more than {MAX_DEPTH} levels; give the "
                    "file as the chat program exported it"
                )
        elif event in ("end_map", "end_array"):
            depth -= 1
        yield event, value
