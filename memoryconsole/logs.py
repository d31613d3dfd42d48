"""Log lines: readable on a terminal, JSON elsewhere, never with the text of a memory."""

import logging
import sys
import traceback
from typing import Any

import structlog
from django.db import OperationalError
from psycopg import OperationalError as DriverError

# Messages of these errors are about the machine. Others may quote a memory, as PostgreSQL does when it refuses a row.
HARMLESS = (OSError, OperationalError, DriverError)


def formatter() -> logging.Formatter:
    on_terminal = sys.stderr.isatty()
    renderer = structlog.dev.ConsoleRenderer() if on_terminal else structlog.processors.JSONRenderer()
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.stdlib.add_logger_name,
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
        ],
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            _without_messages,
            renderer,
        ],
    )


def _without_messages(logger: Any, name: str, event: Any) -> Any:
    """Log an exception by its type and traceback."""
    raised = event.pop("exc_info", None)
    if raised and raised[1]:
        event["exception"] = "\n".join(_described(raised[1]))
    return event


def _described(error: BaseException) -> list[str]:
    """The exception and its causes, the last one first."""
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    message = f": {error}" if isinstance(error, HARMLESS) else ""
    where = "".join(traceback.format_tb(error.__traceback__))
    return [f"{type(error).__name__}{message}\n{where}", *(_described(before) if before else [])]
