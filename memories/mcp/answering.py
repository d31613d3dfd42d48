"""Answering every request over standard input and output.

The library drops lines it cannot parse, so that a host would wait for ever. When the input ends, it cancels the calls
that are running, so that a host would be told that they failed.
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
    """Wrap the two streams of a server. Its input only ends when every request is answered."""
    unanswered = Unanswered()
    put_in, inside = anyio.create_memory_object_stream[SessionMessage](0)
    outside, taken_out = anyio.create_memory_object_stream[SessionMessage](0)

    async def pass_in() -> None:
        async with put_in:
            async for item in received:
                if not isinstance(item, Exception):
                    unanswered.note(item.message)
                    await put_in.send(item)
                elif line := _line_of(item):
                    await sent.send(SessionMessage(_refusal(line)))
            with anyio.move_on_after(PATIENCE_SECONDS):
                await unanswered.wait_until_empty()

    async def pass_out() -> None:
        async with sent, taken_out:
            async for item in taken_out:
                await sent.send(item)
                unanswered.forget(getattr(item.message, "id", None))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(pass_in)
        tasks.start_soon(pass_out)
        yield inside, outside


class Unanswered:
    """The ids of requests that are not answered yet."""

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

    async def wait_until_empty(self) -> None:
        while self.ids:
            self.answered = anyio.Event()
            await self.answered.wait()


def _line_of(error: Exception) -> str:
    """The line that could not be parsed; empty for an empty line, which needs no answer."""
    return str(error.errors()[0]["input"]).strip() if isinstance(error, ValidationError) else repr(error)


def _refusal(line: str) -> JSONRPCError:
    return JSONRPCError(jsonrpc="2.0", id=_id_in(line), error=ErrorData(code=PARSE_ERROR, message=UNREADABLE))


def _id_in(line: str) -> int | str | None:
    """The id of the request in an unusable line, if it can be parsed."""
    try:
        id = json.loads(line)["id"]
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
    return id if isinstance(id, int | str) and not isinstance(id, bool) else None
