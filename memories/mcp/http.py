"""MCP over streamable HTTP, in a process of its own. The web server passes `/mcp` on to it.

It is stateless: there are no sessions that a restart would lose, and no open streams, because tools send nothing before
their answer.
"""

import signal
import socket
import sys

import uvicorn

from accounts.access import Scope, open_only_instance
from accounts.keys import actor_presenting
from memories.mcp.server import Context, make_server
from memoryconsole.errors import NotAllowed

STOP_SECONDS = 5


def serve(listening: socket.socket) -> None:
    """Serve until SIGTERM."""
    # uvicorn raises the signal again when it has stopped. With this handler, the exit handlers still run.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    application = make_server(_scope_of_key).streamable_http_app(json_response=True, stateless_http=True)
    config = uvicorn.Config(
        application, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=STOP_SECONDS
    )
    uvicorn.Server(config).run(sockets=[listening])


def _scope_of_key(context: Context) -> Scope:
    """The scope of the key's only instance. The web server has already checked the key."""
    assert context.request is not None
    actor = actor_presenting(context.request.headers.get("authorization", ""))
    if actor is None:
        raise NotAllowed("This key is not valid, or was revoked or has expired.", code="invalid_key")
    return open_only_instance(actor)
