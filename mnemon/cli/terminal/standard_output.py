"""Standard output of all commands, and the end of a command that cannot write it."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import TYPE_CHECKING

from mnemon.cli.terminal.exit_code import ExitCode

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class OutputNotWritten(Exception):
    """Standard output cannot be written. Not an `OSError`, which commands report as an error of a file."""


class _OutputFile(FileIO):
    """The file of standard output, which keeps the error of a write."""

    error: OSError | None = None

    def write(self, content: "ReadableBuffer") -> int:
        try:
            return super().write(content)
        except OSError as error:
            self.error = error
            raise OutputNotWritten from error


@contextmanager
def end_on_output_error() -> Iterator[None]:
    """End the process if standard output cannot be written, in the block or at the end of the block.

    The exit code is 2, with a message on standard error. If the reader, such as `head`, closes the pipe, the
    exit code is 1, without a message.
    """
    former = sys.stdout
    if not isinstance(former, TextIOWrapper):  # started with `>&-`: Python discards the output
        yield
        return
    file = _OutputFile(former.fileno(), "wb", closefd=False)
    output = TextIOWrapper(
        BufferedWriter(file),
        encoding=former.encoding,
        errors=former.errors,
        line_buffering=former.line_buffering or former.write_through,
    )
    sys.stdout = output
    try:
        yield
    finally:
        if not output.closed:
            with suppress(OutputNotWritten):
                output.flush()
        if file.error:
            _end_with_code(file, file.error)
        sys.stdout = former


def _end_with_code(file: _OutputFile, error: OSError) -> None:
    # Discard the rest of the buffer: Python would report an error for it on exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())
    if isinstance(error, BrokenPipeError):
        sys.exit(ExitCode.NEGATIVE_RESULT)
    with suppress(OSError):  # standard error may have the same full disk
        print(
            f"mnemon: standard output cannot be written: {error.strerror}\n"
            "  Choose another place for the output",
            file=sys.stderr,
            flush=True,
        )
    sys.exit(ExitCode.USAGE_ERROR)
