"""Files of labelled examples: one JSON object per line."""

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from mnemon_contracts.base import describe_problem

LineT = TypeVar("LineT", bound=BaseModel)


def read_lines(path: Path, model: type[LineT], invalid: type[ValueError]) -> list[LineT]:
    """Read each line of a file as an instance of `model`; skip empty lines.

    Raises:
        ValueError: the file cannot be read, or a line does not satisfy the model. The error is an instance of
            `invalid`.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise invalid(f"{path} cannot be read: {error.strerror}; name another file") from error
    except UnicodeDecodeError as error:
        raise invalid(f"{path} is not UTF-8: {error.reason}; save the file as UTF-8") from error
    read: list[LineT] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            read.append(model.model_validate_json(line))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            field = ".".join(map(str, first["loc"])) or "line"
            raise invalid(f"{path}:{number}: {field}: {describe_problem(first)}; correct the line") from error
    return read
