"""Over standard input and output: whoever asks is answered.

Left to itself, the protocol drops a line it cannot read, and breaks off what is under way when the input ends: a host
waits for ever, or is told that a call has failed which has not.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCNotification, JSONRPCRequest
from pydantic import ValidationError

PATIENCE_SECONDS = 60
UNREADABLE = "This line is no message of the protocol: it has to be JSON, and its text Unicode without halves of pairs."


@asynccontextmanager
async def answering_everything(received: Any, sent: Any) -> AsyncIterator[tuple[Any, Any]]:
    """The same two streams for a server; what it is to read ends when everything that was asked is answered."""
    asked = Unanswered()
    put_in, inside = anyio.create_memory_object_stream[SessionMessage](0)
    outside, taken_out = anyio.create_memory_object_stream[SessionMessage](0)

    async def pass_in() -> None:
        async with put_in:
            async for item in received:
                if not isinstance(item, Exception):
                    asked.note(item.message)
                    await put_in.send(item)
                elif line := _line_of(item):
                    await sent.send(SessionMessage(_refusal(line)))
            with anyio.move_on_after(PATIENCE_SECONDS):
                await asked.nothing_more()

    async def pass_out() -> None:
        async with sent, taken_out:
            async for item in taken_out:
                await sent.send(item)
                asked.forget(getattr(item.message, "id", None))

    async with anyio.create_task_group() as both:
        both.start_soon(pass_in)
        both.start_soon(pass_out)
        yield inside, outside


class Unanswered:
    """The ids of requests that are under way."""

    def __init__(self) -> None:
        self.ids: set[object] = set()
        self.answered = anyio.Event()

    def note(self, message: object) -> None:
        if isinstance(message, JSONRPCRequest):
            self.ids.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self.forget((message.params or {}).get("requestId"))

    def forget(self, id: object) -> None:
        self.ids.discard(id)
        self.answered.set()

    async def nothing_more(self) -> None:
        while self.ids:
            self.answered = anyio.Event()
            await self.answered.wait()


def _line_of(error: Exception) -> str:
    """What could not be read; nothing of an empty line, which asks nothing."""
    return str(error.errors()[0]["input"]).strip() if isinstance(error, ValidationError) else repr(error)


def _refusal(line: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=_id_in(line), error=ErrorData(code=PARSE_ERROR, message=UNREADABLE))


def _id_in(line: str) -> int | str | None:
    """Of the request in a line that cannot be used, if Python can read that much of it."""
    try:
        id = json.loads(line)["id"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return id if isinstance(id, int | str) and not isinstance(id, bool) else None
