"""MCP over standard input and output, for a host that starts the server itself."""

import os
import signal

import anyio
from django.conf import settings
from mcp.server.stdio import stdio_server

from accounts.access import Scope
from memories.mcp.answering import answering_everything
from memories.mcp.server import Context, make_server
from memoryconsole import embedded
from memoryconsole.commands import open_from_shell


def serve(slug: str) -> None:
    """Serve until standard input ends and every request is answered.

    Calls have the permissions of the shell, because whoever starts this has one.
    """
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _end)

    def open_scope(context: Context) -> Scope:
        return open_from_shell(slug)

    server = make_server(open_scope)

    async def run() -> None:
        async with stdio_server() as (received, sent), answering_everything(received, sent) as (inside, outside):
            await server.run(inside, outside, server.create_initialization_options())

    anyio.run(run)


def _end(number: int, frame: object) -> None:
    """Exit at once: Python would wait for the thread that reads standard input, which cannot be interrupted."""
    if settings.EMBEDDED_POSTGRES:
        embedded.leave()
    os._exit(0)
