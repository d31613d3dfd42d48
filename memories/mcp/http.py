"""MCP over streamable HTTP, in a process of its own behind the web server, which passes `/mcp` on to it.

Every request is complete in itself: no sessions to lose when the process is replaced, and no streams to hold open,
because no tool has anything to say before its answer.
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
    """Until told to stop."""
    # uvicorn repeats the signal when it is done; without this the process would end without its exit handlers.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    application = make_server(_scope_of_key).streamable_http_app(json_response=True, stateless_http=True)
    config = uvicorn.Config(
        application, log_config=None, access_log=False, server_header=False, timeout_graceful_shutdown=STOP_SECONDS
    )
    uvicorn.Server(config).run(sockets=[listening])


def _scope_of_key(context: Context) -> Scope:
    """The web server has looked at the key already; here it decides which instance is opened."""
    assert context.request is not None
    actor = actor_presenting(context.request.headers.get("authorization", "").encode())
    if actor is None:
        raise NotAllowed("This key is not valid, or was revoked or has expired.", code="invalid_key")
    return open_only_instance(actor)
