"""Logs: coloured lines on a terminal, JSON lines otherwise."""

import logging
import sys
from typing import TextIO

import structlog
from structlog.typing import EventDict, Processor

from mnemon_infra.telemetry.tracing import build_log_fields

_OURS = "mnemon"


class _StandardErrorHandler(logging.StreamHandler[TextIO]):
    """Handler that writes to the current `sys.stderr`, which may have been replaced since the start."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


def configure_logging(level: int = logging.INFO) -> None:
    """Send all logs to standard error: mnemon's from `level` on, those of libraries from WARNING on.

    A terminal gets coloured lines; a file or a pipe gets one JSON object per line, with `timestamp` in UTC,
    `level`, `logger` and `event`.
    """
    person = sys.stderr.isatty()
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        _add_trace,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="%H:%M:%S" if person else "iso", utc=not person),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=_build_logger,
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=True,
    )
    handler = _StandardErrorHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *(_list_person_processors() if person else _list_program_processors()),
            ],
        )
    )
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger(_OURS).setLevel(level)


def _build_logger(name: str = "") -> logging.Logger:
    return logging.getLogger(f"{_OURS}.{name}" if name else _OURS)


def _add_trace(_: object, __: str, line: EventDict) -> EventDict:
    """Add the ids of the current trace and span, if there are any, to a log line."""
    return {**build_log_fields(), **line}


def _list_person_processors() -> list[Processor]:
    # No tracebacks that show local variables: these contain messages of users.
    return [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]


def _list_program_processors() -> list[Processor]:
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(ensure_ascii=False)]
