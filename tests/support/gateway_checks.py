"""Hooks of schemathesis for the gateway, which `schemathesis.toml` beside it names."""

import re
from typing import Any, Final

import schemathesis

BEYOND_SCHEMAS: Final = re.compile(
    "|".join(
        (
            # JSON Schema counts characters in place of bytes, and permits every character.
            r"has \d+ bytes, and the limit is",
            r"contains? U\+0000",
            r"contains a lone surrogate",
            r"is not UTF-8",
            r"begins or ends with white space",
            r"must be in the years",
            r"is missing or blank",
            # Released contracts state these bounds only in descriptions.
            r"^importance: Input should be (greater|less) than or equal to",
            # Whether a field is valid depends on another field.
            r"name the fact either by `id` or by `query`",
            r"works only with the `id` of the fact",
            r"is valid only with `verify`",
            r"differs from the `id` in the body",
            r"is missing[:;] (give|name)",
            # Whether a value is valid depends on the log.
            r"is not in the log",
            r"the log begins at",
            r"is in the future",
            r"is in the past",
            r"is not the `next` of a reply",
            r"is later than `as_of`",
            r"the log has no event at position",
            r"is not of this user",
        )
    )
)
"""Pattern of the errors for requests that satisfy their schema: rules that a schema cannot express."""


@schemathesis.check
def refuses_for_a_reason_beyond_schemas(
    context: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case[Any]
) -> None:
    """Check that a request which satisfies its schema is refused only with an error in `BEYOND_SCHEMAS`."""
    if case.meta is None or not case.meta.generation.mode.is_positive or response.status_code != 422:
        return
    detail = response.json()["detail"]
    if not BEYOND_SCHEMAS.search(detail):
        raise AssertionError(f"the schema permits what the gateway refuses: {detail}")


@schemathesis.hook
def before_call(context: schemathesis.HookContext, case: schemathesis.Case[Any], _: dict[str, Any]) -> None:
    """Replace a valid `min_seq` above 0 by 0: a request would wait for a log position that does not exist."""
    body: Any = case.body
    position = body.get("min_seq") if isinstance(body, dict) else None
    if isinstance(position, int) and not isinstance(position, bool) and 0 < position < 2**63:
        case.body = {**body, "min_seq": 0}
