"""The PostgreSQL that comes with the console: started when first needed, stopped by the last process that uses it.

Nothing here runs at import, so commands that never touch the database start nothing.
"""

import functools

from django.conf import settings

from memoryconsole.embedded.errors import EmbeddedPostgresError
from memoryconsole.embedded.server import DATABASE, Address, Server

__all__ = [
    "DATABASE",
    "Address",
    "EmbeddedPostgresError",
    "Server",
    "ensure_running",
    "has_died",
    "leave",
    "revive",
    "server",
]


@functools.cache
def server() -> Server:
    return Server(settings.DATA_DIR, bin_dir=settings.PG_BIN_DIR, durable=settings.PG_FSYNC)


def ensure_running() -> Address:
    return server().ensure_running()


def has_died() -> bool:
    return server().has_died()


def revive() -> bool:
    """Connect to the server, and start it if that fails; True if it had to be started."""
    return server().revive()


def leave() -> None:
    """Stop using the server, in a process that ends without its exit handlers."""
    server().leave()
